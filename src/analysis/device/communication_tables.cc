#include "analysis/device/communication_tables.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/analysis/device/figures.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/communication.h"
#include "headrace/trace/columns.h"
#include "trace/database.h"

namespace headrace::analysis::device {
namespace {

using namespace trace::ascend;

constexpr const char* kTimes = "communication";
constexpr const char* kBandwidths = "communication_bandwidth";
constexpr const char* kMatrix = "communication_matrix";

bool has_file(const ProfileFolder& profile, const char* name) {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::path(profile.output) / name, error);
}

double ratio(double part, double other) {
  const double whole = part + other;
  return whole > 0 ? part / whole : kNoFigure;
}

struct OfRank {
  std::int64_t rank;
  Communication communication;
};

Table times_table(const std::vector<OfRank>& ranks) {
  Rows<CommunicationColumns> rows;
  for (const auto& [rank, communication] : ranks) {
    for (const CommunicationTime& time : communication.times)
      rows.add(operation_of(rank, time.of), time.start_ns, time.elapse_s, time.transit_s, time.wait_s,
               time.synchronisation_s, time.idle_s, ratio(time.wait_s, time.transit_s),
               ratio(time.synchronisation_s, time.transit_s));
  }
  return rows.take();
}

Table bandwidths_table(const std::vector<OfRank>& ranks) {
  Rows<CommunicationBandwidthColumns> rows;
  for (const auto& [rank, communication] : ranks) {
    for (const CommunicationBandwidth& each : communication.bandwidths)
      rows.add(operation_of(rank, each.of), each.transport, each.size_mb, each.transit_s, each.bandwidth_gbps,
               each.large_packet_ratio, each.packet_mb, each.packets, each.packets_s);
  }
  return rows.take();
}

Table links_table(const std::vector<OfRank>& ranks) {
  Rows<CommunicationMatrixColumns> rows;
  for (const auto& [rank, communication] : ranks) {
    for (const CommunicationLink& link : communication.links)
      rows.add(operation_of(rank, link.of), link.source, link.target, link.transport, link.size_mb,
               link.transit_s, link.bandwidth_gbps, link.slowest);
  }
  return rows.take();
}

}  // namespace

std::vector<std::string> communication_tables(const ProfileFolder& profile) {
  std::vector<std::string> names;
  bool times = has_file(profile, "communication.json");
  bool matrix = has_file(profile, "communication_matrix.json");
  if (!profile.analysis_database.empty() && !times && !matrix) {
    try {
      const trace::Database database(profile.analysis_database);
      times = database.has_table("CommAnalyzerTime");
      matrix = database.has_table("CommAnalyzerMatrix");
    } catch (const FormatError&) {
      // Asking for one of its tables says what is wrong with it.
    }
  }
  if (times) names.insert(names.end(), {kTimes, kBandwidths});
  if (matrix) names.emplace_back(kMatrix);
  return names;
}

std::optional<Table> communication_table(std::span<const ProfileFolder> profiles, const std::string& name) {
  if (name != kTimes && name != kBandwidths && name != kMatrix) return std::nullopt;
  std::vector<OfRank> ranks;
  std::vector<FormatError> failures;
  for (const ProfileFolder& profile : profiles) {
    OfRank of{profile.rank.value_or(trace::kAbsent), read_communication(profile)};
    failures.insert(failures.end(), of.communication.failures.begin(), of.communication.failures.end());
    if (!of.communication.files.empty()) ranks.push_back(std::move(of));
  }
  if (ranks.empty() && failures.empty()) return std::nullopt;
  Table table = name == kTimes        ? times_table(ranks)
                : name == kBandwidths ? bandwidths_table(ranks)
                                      : links_table(ranks);
  if (table.rows() == 0 && !failures.empty()) throw FormatError(failures.front());
  for (const FormatError& failure : failures) table.notes.emplace_back(failure.what());
  return table;
}

}  // namespace headrace::analysis::device
