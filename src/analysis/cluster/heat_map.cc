#include "headrace/analysis/cluster/heat_map.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "step_matrix.h"

namespace headrace::analysis::cluster {
namespace {

/// Positions of the ranks that are drawn, in their order.
std::vector<std::size_t> order_of(std::span<const RankSteps> ranks, const std::vector<std::int64_t>& only) {
  std::vector<std::size_t> order;
  if (only.empty()) {
    order.resize(ranks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return ranks[a].rank < ranks[b].rank; });
    return order;
  }
  std::map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < ranks.size(); ++i) places.emplace(ranks[i].rank, i);
  for (const std::int64_t rank : only) {
    if (const auto found = places.find(rank); found != places.end()) order.push_back(found->second);
  }
  return order;
}

/// How many share a place, so that there are at most `most` places.
std::size_t sharing(std::size_t count, std::size_t most) {
  return std::max<std::size_t>(1, (count + most - 1) / std::max<std::size_t>(most, 1));
}

}  // namespace

HeatMap heat_map(std::span<const RankSteps> ranks, const HeatMapOptions& options) {
  const StepMatrix matrix = step_matrix(ranks);
  const std::vector<std::size_t> order = order_of(ranks, options.only);
  HeatMap map;
  if (matrix.steps.empty() || order.empty()) return map;
  const double step_s = std::accumulate(matrix.job_s.begin(), matrix.job_s.end(), 0.0) /
                        static_cast<double>(matrix.job_s.size());
  const std::size_t tall = sharing(order.size(), options.most_rows);
  const std::size_t wide = sharing(matrix.steps.size(), options.most_columns);
  for (std::size_t i = 0; i < matrix.steps.size(); i += wide)
    map.columns.emplace_back(matrix.steps[i], matrix.steps[std::min(i + wide, matrix.steps.size()) - 1]);
  for (std::size_t i = 0; i < order.size(); i += tall)
    map.rows.emplace_back(ranks[order[i]].rank, ranks[order[std::min(i + tall, order.size()) - 1]].rank);
  map.late_share.assign(map.rows.size() * map.columns.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto late = matrix.late_of(order[i]);
    for (std::size_t step = 0; step < late.size(); ++step) {
      double& field = map.late_share[i / tall * map.columns.size() + step / wide];
      if (step_s > 0) field = std::fmax(field, late[step] / step_s);
    }
  }
  return map;
}

}  // namespace headrace::analysis::cluster
