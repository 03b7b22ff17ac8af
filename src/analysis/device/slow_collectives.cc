#include "analysis/device/slow_collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/device/order.h"
#include "headrace/analysis/device/advice.h"

namespace headrace::analysis::device {
namespace {

struct Critical {
  std::size_t count;
  double ratio;
};
/// Dixon's critical values, one-sided, 99.5 %; between two of them on a straight line.
constexpr std::array<Critical, 35> kCritical = {{
    {3, .994},  {4, .920},  {5, .823},  {6, .744},  {7, .680},  {8, .723},  {9, .676},
    {10, .638}, {11, .707}, {12, .675}, {13, .649}, {14, .672}, {15, .649}, {16, .629},
    {17, .611}, {18, .595}, {19, .580}, {20, .568}, {21, .556}, {22, .545}, {23, .536},
    {24, .526}, {25, .519}, {26, .510}, {27, .503}, {28, .496}, {29, .489}, {30, .484},
    {40, .439}, {50, .409}, {60, .388}, {70, .372}, {80, .360}, {90, .350}, {100, .341},
}};

double critical(std::size_t count) {
  const auto above = std::find_if(kCritical.begin(), kCritical.end(),
                                  [&](const Critical& each) { return each.count >= count; });
  if (above == kCritical.end()) return kCritical.back().ratio;
  if (above->count == count || above == kCritical.begin()) return above->ratio;
  const Critical& below = *std::prev(above);
  const double part =
      static_cast<double>(count - below.count) / static_cast<double>(above->count - below.count);
  return below.ratio + part * (above->ratio - below.ratio);
}

/// The gap below the sorted values' bulk, by their range; which neighbours, depends on how many there are.
double dixon_ratio(const std::vector<RankDuration>& sorted) {
  const std::size_t n = sorted.size();
  const std::size_t low = n <= 10 ? 1 : 2;
  const std::size_t drop = n <= 7 ? 1 : n <= 13 ? 2 : 3;
  const double range = sorted[n - drop].second - sorted[0].second;
  return range > 0 ? (sorted[low].second - sorted[0].second) / range : 0;
}

struct Spread {
  double mean = 0;
  double deviation = 0;
};

template <class Values, class Value>
Spread spread_of(const Values& values, Value value) {
  Spread spread;
  for (const auto& each : values) spread.mean += value(each);
  spread.mean /= static_cast<double>(values.size());
  for (const auto& each : values) spread.deviation += std::pow(value(each) - spread.mean, 2);
  spread.deviation = std::sqrt(spread.deviation / static_cast<double>(values.size()));
  return spread;
}

/// "allReduce" of "hcom_allReduce__271_0_1".
std::string kind_of(std::string_view operation) {
  if (operation.starts_with("hcom_")) operation.remove_prefix(5);
  return std::string(operation.substr(0, operation.find("__")));
}

bool is_collective(const trace::ascend::CommunicationName& name) {
  const std::string kind = kind_of(name.operation);
  return !name.point_to_point && !name.operation.starts_with("Total Op Info") && kind != "send" &&
         kind != "receive";
}

using OperationKey = std::tuple<std::string, std::string, std::string>;  // step, group, operation

std::map<OperationKey, std::vector<RankDuration>> durations_of(const ClusterData& data) {
  std::map<OperationKey, std::vector<RankDuration>> found;
  for (const trace::ascend::CommunicationTime& each : data.communication.times) {
    const trace::ascend::CommunicationName& name = each.of;
    if (!is_collective(name) || !std::isfinite(each.elapse_s)) continue;
    found[{name.step, name.group, name.operation}].emplace_back(name.rank, each.elapse_s);
  }
  return found;
}

}  // namespace

std::optional<std::int64_t> slow_rank_of(std::span<const RankDuration> durations) {
  std::vector<RankDuration> sorted(durations.begin(), durations.end());
  std::sort(sorted.begin(), sorted.end(), [](const RankDuration& a, const RankDuration& b) {
    return std::tuple(a.second, a.first) < std::tuple(b.second, b.first);
  });
  const std::size_t n = sorted.size();
  if (n < 2) return std::nullopt;
  if (n == 2) {
    const double longer = sorted[1].second;
    const bool differs =
        longer > 0 && (longer - sorted[0].second) / longer > kAdviceThresholds.rank_gap_share;
    return differs ? std::optional(sorted[0].first) : std::nullopt;
  }
  std::set<double> values;
  for (const RankDuration& each : sorted) values.insert(each.second);
  if (values.size() <= 3) return std::nullopt;
  if (n <= kCritical.back().count) {
    if (dixon_ratio(sorted) > critical(n)) return sorted[0].first;
    return std::nullopt;
  }
  const Spread spread = spread_of(sorted, [](const RankDuration& each) { return each.second; });
  const bool below = sorted.front().second < spread.mean - 3 * spread.deviation;
  const bool above = sorted.back().second > spread.mean + 3 * spread.deviation;
  return below || above ? std::optional(sorted.front().first) : std::nullopt;
}

Table slow_ranks_table(const ClusterData& data) {
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> votes;  // slow, operations
  // Groups whose ranks did not record the same operations are cut off somewhere.
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, std::size_t>> counts;
  const auto all = durations_of(data);
  for (const auto& [key, durations] : all) {
    for (const RankDuration& each : durations) ++counts[{std::get<0>(key), std::get<1>(key)}][each.first];
  }
  std::set<std::string> dropped;
  for (const auto& [key, durations] : all) {
    const auto& of_group = counts[{std::get<0>(key), std::get<1>(key)}];
    const bool same = std::all_of(of_group.begin(), of_group.end(),
                                  [&](const auto& each) { return each.second == of_group.begin()->second; });
    if (!same) {
      dropped.insert(std::get<1>(key));
      continue;
    }
    for (const RankDuration& each : durations) ++votes[each.first].second;
    if (const auto slow = slow_rank_of(durations)) ++votes[*slow].first;
  }
  Rows<ClusterSlowRanksColumns> rows;
  for (const auto& [rank, counted] : descending_entries(votes, [](const auto& each) { return each.first; }))
    rows.add(rank, counted);
  for (const std::string& group : dropped)
    rows.note("group " + group + " is left out: its ranks recorded different numbers of operations");
  if (all.empty()) rows.note("no collectives with durations are known");
  return rows.take();
}

Table slow_links_table(const ClusterData& data) {
  struct Operation {
    OperationKey key;
    double size_mb = 0;
    std::string ranks;
    double transfer_s = 0;
  };
  std::map<OperationKey, double> sizes;
  for (const trace::ascend::CommunicationBandwidth& each : data.communication.bandwidths) {
    if (!std::isfinite(each.size_mb)) continue;
    double& size = sizes[{each.of.step, each.of.group, each.of.operation}];
    size = std::max(size, each.size_mb);
  }
  std::map<std::tuple<std::string, double, std::string>, std::vector<Operation>> alike;
  for (const auto& [key, durations] : durations_of(data)) {
    Operation operation{key, 0, "", INFINITY};
    std::set<std::int64_t> ranks;
    for (const RankDuration& each : durations) {
      ranks.insert(each.first);
      operation.transfer_s = std::min(operation.transfer_s, each.second);
    }
    if (const auto size = sizes.find(key); size != sizes.end()) operation.size_mb = size->second;
    operation.ranks = "(" + joined_numbers(ranks) + ")";
    alike[{kind_of(std::get<2>(key)), operation.size_mb, operation.ranks}].push_back(std::move(operation));
  }
  struct Outlier {
    const Operation* operation;
    Spread spread;
    double deviations;
  };
  std::vector<Outlier> outliers;
  for (const auto& [key, operations] : alike) {
    const Spread spread = spread_of(operations, [](const Operation& each) { return each.transfer_s; });
    if (!(spread.deviation > 0)) continue;
    for (const Operation& each : operations) {
      const double deviations = std::abs(each.transfer_s - spread.mean) / spread.deviation;
      if (deviations > 3) outliers.push_back({&each, spread, deviations});
    }
  }
  sort_descending(outliers, [](const Outlier& each) { return each.deviations; });
  constexpr std::size_t kShown = 15;
  if (outliers.size() > kShown) outliers.resize(kShown);
  Rows<ClusterSlowLinksColumns> rows;
  for (const Outlier& outlier : outliers) {
    const auto& [step, group, operation] = outlier.operation->key;
    rows.add(operation + "@" + group, step, kind_of(operation), outlier.operation->size_mb,
             outlier.operation->ranks, outlier.operation->transfer_s, outlier.spread.mean,
             outlier.deviations);
  }
  if (outliers.empty()) rows.note("no operation is three standard deviations off the others like it");
  return rows.take();
}

}  // namespace headrace::analysis::device
