// Figures of all ranks as tables.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/order.h"
#include "analysis/device/profiler_tables.h"
#include "analysis/device/slow_collectives.h"
#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

constexpr const char* kSums = "Total Op Info";

double largest(double a, double b) {
  if (std::isnan(a)) return b;
  return std::isnan(b) ? a : std::max(a, b);
}

template <class Ranks>
std::string ranks_text(const Ranks& ranks) {
  return "(" + joined_numbers(ranks) + (ranks.size() == 1 ? ",)" : ")");
}

Table step_time_table(const ClusterData& data) {
  Rows<ClusterStepTimeColumns> rows;
  rows.take_notes(data.notes);
  std::map<std::string, std::map<std::int64_t, StepTimes>> by_step;
  for (const ClusterStep& step : data.steps) {
    rows.add(step.step, "rank", std::to_string(step.rank), step.parts);
    by_step[step.step][step.rank] = step.parts;
  }
  for (const auto& [step, ranks] : by_step) {
    for (const std::vector<std::int64_t>& stage : data.stages) {
      StepTimes most;
      most.fill(kNoFigure);
      bool any = false;
      for (const std::int64_t rank : stage) {
        const auto at = ranks.find(rank);
        if (at == ranks.end()) continue;
        any = true;
        for (std::size_t i = 0; i < most.size(); ++i) most[i] = largest(most[i], at->second[i]);
      }
      if (any) rows.add(step, "stage", ranks_text(stage), most);
    }
  }
  return rows.take();
}

/// `by_rank`: what each rank has. `whole`: what the gap is a share of, 0: the mean. The slow rank is the
/// lowest if `low_is_slow`.
void add_gap(const char* quantity, const char* unit, const std::map<std::int64_t, double>& by_rank,
             double whole, double limit, bool low_is_slow, Rows<ClusterGapsColumns>& rows) {
  if (by_rank.empty()) return;
  const auto by_value = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto low = std::min_element(by_rank.begin(), by_rank.end(), by_value);
  const auto high = std::max_element(by_rank.begin(), by_rank.end(), by_value);
  double sum = 0;
  for (const auto& [rank, value] : by_rank) sum += value;
  const double mean = sum / static_cast<double>(by_rank.size());
  const double gap = high->second - low->second;
  const double of = whole > 0 ? whole : mean;
  const double share = of > 0 ? gap / of : kNoFigure;
  const bool is_slow = share > limit;
  const std::int64_t slow_rank = low_is_slow ? low->first : high->first;
  rows.add(quantity, unit, low->second, low->first, high->second, high->first, mean, gap, share, is_slow,
           is_slow ? slow_rank : trace::kAbsent);
}

std::map<std::int64_t, double> bandwidth_by_rank(const ClusterData& data, const char* transport) {
  std::map<std::int64_t, std::pair<double, double>> sums;  // MB, seconds
  std::set<std::tuple<std::int64_t, std::string, std::string, std::string>> seen;
  for (const auto& row : data.communication.bandwidths) {
    if (row.transport != transport || row.of.operation.starts_with(kSums)) continue;
    if (!std::isfinite(row.size_mb) || !std::isfinite(row.transit_s)) continue;
    if (!seen.insert({row.of.rank, row.of.step, row.of.group, row.of.operation}).second) continue;
    sums[row.of.rank].first += row.size_mb;
    sums[row.of.rank].second += row.transit_s;
  }
  std::map<std::int64_t, double> result;
  for (const auto& [rank, sum] : sums) {
    if (sum.second > 0) result[rank] = sum.first / sum.second / 1e3;
  }
  return result;
}

Table gaps_table(const ClusterData& data) {
  std::map<std::int64_t, StepTimes> sums;
  for (const ClusterStep& step : data.steps) {
    StepTimes& sum = sums[step.rank];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += std::isfinite(step.parts[i]) ? step.parts[i] : 0;
  }
  double whole = 0;
  for (const auto& [rank, sum] : sums) whole += sum[kComputingPart] + sum[kExposedPart] + sum[kFreePart];
  if (!sums.empty()) whole /= static_cast<double>(sums.size());
  const auto of = [&](std::size_t part) {
    std::map<std::int64_t, double> values;
    for (const auto& [rank, sum] : sums) values[rank] = sum[part];
    return values;
  };
  Rows<ClusterGapsColumns> rows;
  const double limit = kAdviceThresholds.rank_gap_share;
  add_gap("computing", "s", of(kComputingPart), whole, limit, false, rows);
  add_gap("communication_not_overlapped", "s", of(kExposedPart), whole, limit, true, rows);
  add_gap("free", "s", of(kFreePart), whole, limit, false, rows);
  for (const char* transport : {"SDMA", "RDMA"})
    add_gap(transport, "GB/s", bandwidth_by_rank(data, transport), 0, kAdviceThresholds.link_gap_share, true,
            rows);
  return rows.take();
}

Table communication_table(const ClusterData& data) {
  // A sum of a file is made again: files of ranks sum by rank, and names of groups differ.
  std::map<std::string, std::set<std::int64_t>> members;
  for (const auto& each : data.communication.times) {
    if (!each.of.operation.starts_with(kSums)) members[each.of.group].insert(each.of.rank);
  }
  Rows<ClusterCommunicationColumns> rows;
  const auto add = [&](const trace::ascend::CommunicationName& name, const std::array<double, 5>& times) {
    rows.add(operation_of(name), ranks_text(members[name.group]), times);
  };
  using Sum = std::pair<trace::ascend::CommunicationName, std::array<double, 5>>;
  std::map<std::tuple<std::int64_t, std::string, std::string, bool>, Sum> sums;
  for (const auto& time : data.communication.times) {
    if (time.of.operation.starts_with(kSums)) continue;
    const std::array<double, 5> values = {time.elapse_s, time.transit_s, time.wait_s, time.synchronisation_s,
                                          time.idle_s};
    add(time.of, values);
    Sum& sum = sums[{time.of.rank, time.of.step, time.of.group, time.of.point_to_point}];
    sum.first = time.of;
    sum.first.operation = kSums;
    for (std::size_t i = 0; i < values.size(); ++i) sum.second[i] += std::isfinite(values[i]) ? values[i] : 0;
  }
  for (const auto& [key, sum] : sums) add(sum.first, sum.second);
  return rows.take();
}

/// Local ranks of each group to global ones: a rank's copy to itself is recorded by that rank alone.
std::map<std::pair<std::string, std::int64_t>, std::int64_t> global_ranks(const ClusterData& data) {
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> global;
  for (const auto& link : data.communication.links) {
    if (link.of.rank >= 0 && link.source == link.target)
      global.try_emplace({link.of.group, link.source}, link.of.rank);
  }
  return global;
}

Table matrix_table(const ClusterData& data) {
  struct Cell {
    double size_mb = 0;
    double transit_s = 0;
    std::set<std::string> transports;
  };
  const auto global = global_ranks(data);
  std::size_t unknown = 0;
  const auto rank_of = [&](const trace::ascend::CommunicationLink& link, std::int64_t local) {
    if (link.of.rank < 0) return local;  // of a summary: global already
    const auto at = global.find({link.of.group, local});
    if (at == global.end()) ++unknown;
    return at == global.end() ? trace::kAbsent : at->second;
  };
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Cell> cells;
  for (const trace::ascend::CommunicationLink& link : data.communication.links) {
    // "allreduce-total" is the sum of its kind; the others are single operations.
    if (!link.of.operation.ends_with("-total")) continue;
    const std::int64_t source = rank_of(link, link.source);
    const std::int64_t target = rank_of(link, link.target);
    if (source < 0 || target < 0) continue;
    Cell& cell = cells[{link.of.step, source, target}];
    cell.size_mb += std::isfinite(link.size_mb) ? link.size_mb : 0;
    cell.transit_s += std::isfinite(link.transit_s) ? link.transit_s : 0;
    cell.transports.insert(link.transport);
  }
  Rows<ClusterMatrixColumns> rows;
  for (const auto& [key, cell] : cells) {
    rows.add(key, joined(cell.transports, ", "), cell.size_mb, cell.transit_s,
             cell.transit_s > 0 ? cell.size_mb / cell.transit_s / 1e3 : kNoFigure);
  }
  if (unknown > 0)
    rows.note(std::to_string(unknown) +
              " ends of links are left out: which rank they are is not known (ranks are missing)");
  return rows.take();
}

}  // namespace

ClusterTables cluster_tables(const ClusterData& data) {
  return {step_time_table(data), gaps_table(data),       communication_table(data),
          matrix_table(data),    slow_ranks_table(data), slow_links_table(data)};
}

}  // namespace headrace::analysis::device
