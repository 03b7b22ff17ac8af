// What is known of all ranks as tables.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/slow_collectives.h"
#include "headrace/analysis/device/advice_thresholds.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

constexpr std::size_t kColumnCount = std::size(ClusterData::kColumns);
enum Part : std::size_t { kComputing = 0, kExposed = 1, kFree = 4 };
constexpr const char* kSums = "Total Op Info";

double largest(double a, double b) {
  if (std::isnan(a)) return b;
  return std::isnan(b) ? a : std::max(a, b);
}

template <class Ranks>
std::string ranks_text(const Ranks& ranks) {
  std::string text = "(";
  for (const std::int64_t rank : ranks) text += (text == "(" ? "" : ", ") + std::to_string(rank);
  return text + (ranks.size() == 1 ? ",)" : ")");
}

Table step_time_table(const ClusterData& data) {
  Texts steps, types, indices;
  std::array<Numbers, kColumnCount> columns;
  const auto add = [&](const std::string& step, const char* type, const std::string& index,
                       const std::vector<double>& parts) {
    steps.push_back(step);
    types.push_back(type);
    indices.push_back(index);
    for (std::size_t i = 0; i < kColumnCount; ++i) columns[i].push_back(parts[i]);
  };
  std::map<std::string, std::map<std::int64_t, std::vector<double>>> by_step;
  for (const ClusterStep& step : data.steps) {
    add(step.step, "rank", std::to_string(step.rank), step.parts);
    by_step[step.step][step.rank] = step.parts;
  }
  for (const auto& [step, ranks] : by_step) {
    for (const std::vector<std::int64_t>& stage : data.stages) {
      std::vector<double> most(kColumnCount, kNoFigure);
      bool any = false;
      for (const std::int64_t rank : stage) {
        const auto at = ranks.find(rank);
        if (at == ranks.end()) continue;
        any = true;
        for (std::size_t i = 0; i < kColumnCount; ++i) most[i] = largest(most[i], at->second[i]);
      }
      if (any) add(step, "stage", ranks_text(stage), most);
    }
  }
  Table table;
  table.add("step", std::move(steps)).add("type", std::move(types)).add("index", std::move(indices));
  for (std::size_t i = 0; i < kColumnCount; ++i) table.add(ClusterData::kColumns[i], std::move(columns[i]));
  table.notes = data.notes;
  return table;
}

/// Rows of the table `gaps`.
class Gaps {
 public:
  /// `by_rank`: what each rank has. `whole`: what the gap is a share of, 0: the mean. The slow rank is the
  /// lowest if `low_is_slow`.
  void add(const char* quantity, const char* unit, const std::map<std::int64_t, double>& by_rank,
           double whole, double limit, bool low_is_slow) {
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
    quantities_.push_back(quantity);
    units_.push_back(unit);
    lowest_.push_back(low->second);
    lowest_rank_.push_back(low->first);
    highest_.push_back(high->second);
    highest_rank_.push_back(high->first);
    mean_.push_back(mean);
    gap_.push_back(gap);
    share_.push_back(share);
    const bool is_slow = share > limit;
    slow_.push_back(is_slow ? 1 : 0);
    slow_rank_.push_back(!is_slow ? trace::kAbsent : low_is_slow ? low->first : high->first);
  }

  Table take() {
    Table table;
    table.add("quantity", std::move(quantities_))
        .add("unit", std::move(units_))
        .add("lowest", std::move(lowest_))
        .add("lowest_rank", std::move(lowest_rank_))
        .add("highest", std::move(highest_))
        .add("highest_rank", std::move(highest_rank_))
        .add("mean", std::move(mean_))
        .add("gap", std::move(gap_))
        .add("gap_share", std::move(share_))
        .add("slow", std::move(slow_))
        .add("slow_rank", std::move(slow_rank_));
    return table;
  }

 private:
  Texts quantities_, units_;
  Numbers lowest_, highest_, mean_, gap_, share_;
  Integers lowest_rank_, highest_rank_, slow_, slow_rank_;
};

std::map<std::int64_t, double> bandwidth_by_rank(const ClusterData& data, const char* transport) {
  std::map<std::int64_t, std::pair<double, double>> sums;  // MB, seconds
  std::set<std::tuple<std::int64_t, std::string, std::string, std::string>> seen;
  for (const ClusterBandwidth& each : data.bandwidths) {
    const auto& row = each.bandwidth;
    if (row.transport != transport || row.of.operation.starts_with(kSums)) continue;
    if (!std::isfinite(row.size_mb) || !std::isfinite(row.transit_s)) continue;
    if (!seen.insert({each.rank, row.of.step, row.of.group, row.of.operation}).second) continue;
    sums[each.rank].first += row.size_mb;
    sums[each.rank].second += row.transit_s;
  }
  std::map<std::int64_t, double> result;
  for (const auto& [rank, sum] : sums) {
    if (sum.second > 0) result[rank] = sum.first / sum.second / 1e3;
  }
  return result;
}

Table gaps_table(const ClusterData& data) {
  std::map<std::int64_t, std::vector<double>> sums;
  for (const ClusterStep& step : data.steps) {
    std::vector<double>& sum = sums.try_emplace(step.rank, kColumnCount, 0.0).first->second;
    for (std::size_t i = 0; i < kColumnCount; ++i) sum[i] += std::isfinite(step.parts[i]) ? step.parts[i] : 0;
  }
  double whole = 0;
  for (const auto& [rank, sum] : sums) whole += sum[kComputing] + sum[kExposed] + sum[kFree];
  if (!sums.empty()) whole /= static_cast<double>(sums.size());
  const auto of = [&](Part part) {
    std::map<std::int64_t, double> values;
    for (const auto& [rank, sum] : sums) values[rank] = sum[part];
    return values;
  };
  Gaps gaps;
  const double limit = kAdviceThresholds.rank_gap_share;
  gaps.add("computing", "s", of(kComputing), whole, limit, false);
  gaps.add("communication_not_overlapped", "s", of(kExposed), whole, limit, true);
  gaps.add("free", "s", of(kFree), whole, limit, false);
  for (const char* transport : {"SDMA", "RDMA"})
    gaps.add(transport, "GB/s", bandwidth_by_rank(data, transport), 0, kAdviceThresholds.link_gap_share,
             true);
  return gaps.take();
}

Table communication_table(const ClusterData& data) {
  // A sum of a file is made again: files of ranks sum by rank, and names of groups differ.
  std::map<std::string, std::set<std::int64_t>> members;
  for (const ClusterOperation& each : data.operations) {
    if (!each.time.of.operation.starts_with(kSums)) members[each.time.of.group].insert(each.rank);
  }
  Integers ranks;
  Texts steps, types, operations, groups, group_ranks;
  std::array<Numbers, 5> times;
  const auto add = [&](std::int64_t rank, const trace::ascend::CommunicationName& name,
                       const std::array<double, 5>& values) {
    ranks.push_back(rank);
    steps.push_back(name.step);
    types.push_back(name.point_to_point ? "p2p" : "collective");
    operations.push_back(name.operation);
    groups.push_back(name.group);
    group_ranks.push_back(ranks_text(members[name.group]));
    for (std::size_t i = 0; i < values.size(); ++i) times[i].push_back(values[i]);
  };
  using Sum = std::pair<trace::ascend::CommunicationName, std::array<double, 5>>;
  std::map<std::tuple<std::int64_t, std::string, std::string, bool>, Sum> sums;
  for (const auto& [rank, time] : data.operations) {
    if (time.of.operation.starts_with(kSums)) continue;
    const std::array<double, 5> values = {time.elapse_s, time.transit_s, time.wait_s, time.synchronisation_s,
                                          time.idle_s};
    add(rank, time.of, values);
    Sum& sum = sums[{rank, time.of.step, time.of.group, time.of.point_to_point}];
    sum.first = time.of;
    sum.first.operation = kSums;
    for (std::size_t i = 0; i < values.size(); ++i) sum.second[i] += std::isfinite(values[i]) ? values[i] : 0;
  }
  for (const auto& [key, sum] : sums) add(std::get<0>(key), sum.first, sum.second);
  Table table;
  table.add("rank", std::move(ranks))
      .add("step", std::move(steps))
      .add("type", std::move(types))
      .add("operation", std::move(operations))
      .add("group", std::move(groups))
      .add("ranks", std::move(group_ranks));
  constexpr std::array<const char*, 5> kTimes = {"elapse_s", "transit_s", "wait_s", "synchronisation_s",
                                                 "idle_s"};
  for (std::size_t i = 0; i < times.size(); ++i) table.add(kTimes[i], std::move(times[i]));
  return table;
}

/// Local ranks of each group to global ones: a rank's copy to itself is recorded by that rank alone.
std::map<std::pair<std::string, std::int64_t>, std::int64_t> global_ranks(const ClusterData& data) {
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> global;
  for (const auto& [rank, link] : data.links) {
    if (rank >= 0 && link.source == link.target) global.try_emplace({link.of.group, link.source}, rank);
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
  const auto rank_of = [&](const ClusterLink& each, std::int64_t local) {
    if (each.rank < 0) return local;  // of a summary: global already
    const auto at = global.find({each.link.of.group, local});
    if (at == global.end()) ++unknown;
    return at == global.end() ? trace::kAbsent : at->second;
  };
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Cell> cells;
  for (const ClusterLink& each : data.links) {
    // "allreduce-total" is the sum of its kind; the others are single operations.
    if (!each.link.of.operation.ends_with("-total")) continue;
    const std::int64_t source = rank_of(each, each.link.source);
    const std::int64_t target = rank_of(each, each.link.target);
    if (source < 0 || target < 0) continue;
    Cell& cell = cells[{each.link.of.step, source, target}];
    cell.size_mb += std::isfinite(each.link.size_mb) ? each.link.size_mb : 0;
    cell.transit_s += std::isfinite(each.link.transit_s) ? each.link.transit_s : 0;
    cell.transports.insert(each.link.transport);
  }
  Texts steps, transports;
  Integers sources, targets;
  Numbers size, transit, bandwidth;
  for (const auto& [key, cell] : cells) {
    steps.push_back(std::get<0>(key));
    sources.push_back(std::get<1>(key));
    targets.push_back(std::get<2>(key));
    std::string text;
    for (const std::string& transport : cell.transports) text += (text.empty() ? "" : ", ") + transport;
    transports.push_back(text);
    size.push_back(cell.size_mb);
    transit.push_back(cell.transit_s);
    bandwidth.push_back(cell.transit_s > 0 ? cell.size_mb / cell.transit_s / 1e3 : kNoFigure);
  }
  Table table;
  table.add("step", std::move(steps))
      .add("source", std::move(sources))
      .add("target", std::move(targets))
      .add("transport", std::move(transports))
      .add("size_mb", std::move(size))
      .add("transit_s", std::move(transit))
      .add("bandwidth_gbps", std::move(bandwidth));
  if (unknown > 0)
    table.notes.push_back(
        std::to_string(unknown) +
        " ends of links are left out: which rank they are is not known (ranks are missing)");
  return table;
}

}  // namespace

ClusterTables cluster_tables(const ClusterData& data) {
  return {step_time_table(data), gaps_table(data),       communication_table(data),
          matrix_table(data),    slow_ranks_table(data), slow_links_table(data)};
}

}  // namespace headrace::analysis::device
