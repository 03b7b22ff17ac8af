#include "analysis/device/cluster_database.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/analysis/device/figures.h"
#include "headrace/profile/errors.h"
#include "trace/database.h"

namespace headrace::analysis::device {
namespace {

using trace::Database;
using trace::TableRows;
using trace::ascend::CommunicationName;

constexpr const char* kStepsTable = "ClusterStepTraceTime";
constexpr const char* kTimesTable = "ClusterCommunicationTime";
constexpr const char* kBandwidthsTable = "ClusterCommunicationBandwidth";
constexpr const char* kMatrixTable = "ClusterCommunicationMatrix";
constexpr const char* kGroupsTable = "CommunicationGroupMapping";

class ClusterDatabase {
 public:
  ClusterDatabase(Database& database, ClusterData& data) : database_(database), data_(data) {}

  void read() {
    constexpr std::array kTables{kStepsTable, kTimesTable, kBandwidthsTable, kMatrixTable};
    if (std::none_of(kTables.begin(), kTables.end(), [&](auto table) { return database_.has_table(table); }))
      throw FormatError(database_.path(), 0,
                        "a database of a cluster's analysis with a table ClusterStepTraceTime");
    for (const char* table : kTables) {
      if (!database_.has_table(table)) data_.notes.push_back(database_.path() + " has no table " + table);
    }
    read_groups();
    read_steps();
    read_times();
    read_bandwidths();
    read_matrix();
  }

 private:
  void read_groups() {
    TableRows rows(database_, kGroupsTable, {"type", "group_name"});
    while (rows.next()) {
      if (rows.text(0) == "p2p") point_to_point_.emplace(rows.text(1));
    }
  }

  /// Microseconds.
  void read_steps() {
    std::vector<std::string> columns = {"step", "type", "index"};
    for (const char* part :
         {"computing", "communication_not_overlapped", "overlapped", "communication", "free", "stage",
          "bubble", "communication_not_overlapped_and_exclude_receive", "preparing"})
      columns.emplace_back(part);
    static_assert(StepTimeColumns::kCount == 9);
    TableRows rows(database_, kStepsTable, columns);
    while (rows.next()) {
      const std::vector<std::int64_t> members = ranks_in(rows.text(2));
      if (rows.text(1) == "stage") {
        add_set(members, data_.stages);
        continue;
      }
      if (rows.text(1) != "rank" || members.size() != 1) continue;
      ClusterStep step;
      step.step = rows.text(0);
      step.rank = members.front();
      for (std::size_t i = 0; i < step.parts.size(); ++i)
        step.parts[i] = value(rows, static_cast<int>(i) + 3) / 1e6;
      data_.steps.push_back(std::move(step));
    }
  }

  void read_times() {
    TableRows rows(database_, kTimesTable,
                   {"hccl_op_name", "group_name", "step", "rank_id", "start_timestamp", "elapsed_time",
                    "transit_time", "wait_time", "synchronization_time", "idle_time"});
    while (rows.next()) {
      const double start_us = value(rows, 4);
      const bool known = start_us >= 0 && start_us < 4e15;
      data_.operations.push_back(
          {rows.integer(3).value_or(-1),
           {name_of(rows), known ? std::llround(start_us * 1000) : -1, value(rows, 5) / 1e3,
            value(rows, 6) / 1e3, value(rows, 7) / 1e3, value(rows, 8) / 1e3, value(rows, 9) / 1e3}});
    }
  }

  void read_bandwidths() {
    TableRows rows(
        database_, kBandwidthsTable,
        {"hccl_op_name", "group_name", "step", "rank_id", "band_type", "transit_size", "transit_time",
         "bandwidth", "large_packet_ratio", "package_size", "count", "total_duration"});
    while (rows.next()) {
      data_.bandwidths.push_back(
          {rows.integer(3).value_or(-1),
           {name_of(rows), std::string(rows.text(4)), value(rows, 5), value(rows, 6) / 1e3, value(rows, 7),
            value(rows, 8), value(rows, 9), rows.integer(10).value_or(0), value(rows, 11) / 1e3}});
    }
  }

  /// Links between global ranks.
  void read_matrix() {
    TableRows rows(database_, kMatrixTable,
                   {"hccl_op_name", "group_name", "step", "src_rank", "dst_rank", "transport_type",
                    "transit_size", "transit_time", "bandwidth", "op_name"});
    while (rows.next()) {
      data_.links.push_back({-1,
                             {name_of(rows), rows.integer(3).value_or(-1), rows.integer(4).value_or(-1),
                              std::string(rows.text(5)), value(rows, 6), value(rows, 7) / 1e3, value(rows, 8),
                              std::string(rows.text(9))}});
    }
  }

  /// Of the first three columns: operation, group, step.
  CommunicationName name_of(const TableRows& rows) const {
    CommunicationName name;
    name.operation = rows.text(0);
    name.group = rows.text(1);
    constexpr std::string_view kStep = "step";
    std::string_view step = rows.text(2);
    if (step.starts_with(kStep)) step.remove_prefix(kStep.size());
    name.step = step;
    name.point_to_point = point_to_point_.contains(name.group);
    return name;
  }

  static double value(const TableRows& rows, int column) { return rows.number(column).value_or(kNoFigure); }

  Database& database_;
  ClusterData& data_;
  std::set<std::string, std::less<>> point_to_point_;
};

}  // namespace

void read_cluster_database(const std::string& path, ClusterData& data) {
  Database database(path);
  read_cluster_database(database, data);
}

void read_cluster_database(Database& database, ClusterData& data) { ClusterDatabase(database, data).read(); }

std::vector<std::int64_t> ranks_in(std::string_view text) {
  std::vector<std::int64_t> ranks;
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error != std::errc()) {
      ++at;
      continue;
    }
    ranks.push_back(rank);
    at = static_cast<std::size_t>(end - text.data());
  }
  return ranks;
}

void add_set(std::vector<std::int64_t> ranks, std::vector<std::vector<std::int64_t>>& sets) {
  if (!ranks.empty() && std::find(sets.begin(), sets.end(), ranks) == sets.end())
    sets.push_back(std::move(ranks));
}

}  // namespace headrace::analysis::device
