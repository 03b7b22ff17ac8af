#include "analysis/device/communication_tables.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/analysis/device/figures.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/communication.h"
#include "headrace/trace/columns.h"
#include "trace/ascend/database.h"

namespace headrace::analysis::device {
namespace {

using namespace trace::ascend;

constexpr const char* kTimes = "communication";
constexpr const char* kBandwidths = "communication_bandwidth";
constexpr const char* kMatrix = "communication_matrix";
constexpr const char* kSteps = "step_trace_time";

bool has_file(const ProfileFolder& profile, const char* name) {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::path(profile.output) / name, error);
}

double ratio(double part, double other) {
  const double whole = part + other;
  return whole > 0 ? part / whole : kNoFigure;
}

/// The columns that say which operation a row is about.
class NameColumns {
 public:
  void add(std::int64_t rank, const CommunicationName& name) {
    ranks_.push_back(rank);
    steps_.push_back(name.step);
    types_.push_back(name.point_to_point ? "p2p" : "collective");
    operations_.push_back(name.operation);
    groups_.push_back(name.group);
  }
  void put_into(Table& table) {
    table.add("rank", std::move(ranks_))
        .add("step", std::move(steps_))
        .add("type", std::move(types_))
        .add("operation", std::move(operations_))
        .add("group", std::move(groups_));
  }

 private:
  Integers ranks_;
  Texts steps_, types_, operations_, groups_;
};

struct OfRank {
  std::int64_t rank;
  Communication communication;
};

Table times_table(const std::vector<OfRank>& ranks) {
  NameColumns names;
  Integers start;
  Numbers elapse, transit, wait, synchronisation, idle, wait_ratio, synchronisation_ratio;
  for (const auto& [rank, communication] : ranks) {
    for (const CommunicationTime& time : communication.times) {
      names.add(rank, time.of);
      start.push_back(time.start_ns);
      elapse.push_back(time.elapse_s);
      transit.push_back(time.transit_s);
      wait.push_back(time.wait_s);
      synchronisation.push_back(time.synchronisation_s);
      idle.push_back(time.idle_s);
      wait_ratio.push_back(ratio(time.wait_s, time.transit_s));
      synchronisation_ratio.push_back(ratio(time.synchronisation_s, time.transit_s));
    }
  }
  Table table;
  names.put_into(table);
  table.add("start_ns", std::move(start))
      .add("elapse_s", std::move(elapse))
      .add("transit_s", std::move(transit))
      .add("wait_s", std::move(wait))
      .add("synchronisation_s", std::move(synchronisation))
      .add("idle_s", std::move(idle))
      .add("wait_ratio", std::move(wait_ratio))
      .add("synchronisation_ratio", std::move(synchronisation_ratio));
  return table;
}

Table bandwidths_table(const std::vector<OfRank>& ranks) {
  NameColumns names;
  Integers packets;
  Texts transports;
  Numbers size, transit, bandwidth, large, packet, packets_s;
  for (const auto& [rank, communication] : ranks) {
    for (const CommunicationBandwidth& row : communication.bandwidths) {
      names.add(rank, row.of);
      transports.push_back(row.transport);
      size.push_back(row.size_mb);
      transit.push_back(row.transit_s);
      bandwidth.push_back(row.bandwidth_gbps);
      large.push_back(row.large_packet_ratio);
      packet.push_back(row.packet_mb);
      packets.push_back(row.packets);
      packets_s.push_back(row.packets_s);
    }
  }
  Table table;
  names.put_into(table);
  table.add("transport", std::move(transports))
      .add("size_mb", std::move(size))
      .add("transit_s", std::move(transit))
      .add("bandwidth_gbps", std::move(bandwidth))
      .add("large_packet_ratio", std::move(large))
      .add("packet_mb", std::move(packet))
      .add("packets", std::move(packets))
      .add("packets_s", std::move(packets_s));
  return table;
}

Table matrix_table(const std::vector<OfRank>& ranks) {
  NameColumns names;
  Integers source, target;
  Texts transports, slowest;
  Numbers size, transit, bandwidth;
  for (const auto& [rank, communication] : ranks) {
    for (const CommunicationLink& link : communication.links) {
      names.add(rank, link.of);
      source.push_back(link.source);
      target.push_back(link.target);
      transports.push_back(link.transport);
      size.push_back(link.size_mb);
      transit.push_back(link.transit_s);
      bandwidth.push_back(link.bandwidth_gbps);
      slowest.push_back(link.slowest);
    }
  }
  Table table;
  names.put_into(table);
  table.add("source", std::move(source))
      .add("target", std::move(target))
      .add("transport", std::move(transports))
      .add("size_mb", std::move(size))
      .add("transit_s", std::move(transit))
      .add("bandwidth_gbps", std::move(bandwidth))
      .add("slowest", std::move(slowest));
  return table;
}

/// StepTraceTime of the analysis database, with the names that the CSV file's columns get.
std::optional<Table> steps_table(std::span<const ProfileFolder> profiles) {
  const std::vector<std::string> columns = {"computing",  "communication_not_overlapped",
                                            "overlapped", "communication",
                                            "free",       "stage",
                                            "bubble",     "communication_not_overlapped_and_exclude_receive",
                                            "preparing"};
  std::vector<std::string> wanted = {"step"};
  wanted.insert(wanted.end(), columns.begin(), columns.end());
  Integers ranks;
  Texts steps;
  std::vector<Numbers> values(columns.size());
  bool any = false;
  for (const ProfileFolder& profile : profiles) {
    if (profile.analysis_database.empty()) continue;
    Database database(profile.analysis_database);
    if (!database.has_table("StepTraceTime")) continue;
    any = true;
    TableRows rows(database, "StepTraceTime", wanted);
    while (rows.next()) {
      ranks.push_back(profile.rank.value_or(trace::kAbsent));
      steps.push_back(rows.text(0));
      for (std::size_t i = 0; i < columns.size(); ++i)
        values[i].push_back(rows.number(static_cast<int>(i) + 1).value_or(kNoFigure * 1e6) / 1e6);
    }
  }
  if (!any) return std::nullopt;
  Table table;
  table.add("rank", std::move(ranks)).add("step", std::move(steps));
  for (std::size_t i = 0; i < columns.size(); ++i) table.add(columns[i] + "_s", std::move(values[i]));
  return table;
}

}  // namespace

std::vector<std::string> communication_tables(const ProfileFolder& profile) {
  std::vector<std::string> names;
  bool times = has_file(profile, "communication.json");
  bool matrix = has_file(profile, "communication_matrix.json");
  if (!profile.analysis_database.empty()) {
    try {
      const Database database(profile.analysis_database);
      if (!times && !matrix) {
        times = database.has_table("CommAnalyzerTime");
        matrix = database.has_table("CommAnalyzerMatrix");
      }
      if (database.has_table("StepTraceTime")) names.emplace_back(kSteps);
    } catch (const FormatError&) {
      // Asking for one of its tables says what is wrong with it.
    }
  }
  if (times) names.insert(names.end(), {kTimes, kBandwidths});
  if (matrix) names.emplace_back(kMatrix);
  return names;
}

std::optional<Table> communication_table(std::span<const ProfileFolder> profiles, const std::string& name) {
  if (name == kSteps) return steps_table(profiles);
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
                                      : matrix_table(ranks);
  if (table.rows() == 0 && !failures.empty()) throw FormatError(failures.front());
  for (const FormatError& failure : failures) table.notes.emplace_back(failure.what());
  return table;
}

}  // namespace headrace::analysis::device
