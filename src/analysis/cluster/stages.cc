#include "headrace/analysis/cluster/stages.h"

#include <algorithm>
#include <cmath>

#include "step_matrix.h"

namespace headrace::analysis::cluster {
namespace {

/// The difference must be so many times its standard error over the steps.
constexpr double kStandardErrors = 4;
/// Fewer steps have no standard error to speak of.
constexpr std::size_t kFewestSteps = 4;

/// How far the times are beyond their mean over stages, step by step, is more than chance.
bool is_lasting(const StepMatrix& matrix, std::size_t longest) {
  std::vector<double> beyond;
  for (std::size_t step = 0; step < matrix.steps.size(); ++step) {
    double sum = 0;
    for (std::size_t stage = 0; stage < matrix.stages.size(); ++stage)
      sum += matrix.times_of_stage(stage)[step];
    const double each =
        matrix.times_of_stage(longest)[step] - sum / static_cast<double>(matrix.stages.size());
    if (!std::isnan(each)) beyond.push_back(each);
  }
  if (beyond.size() < kFewestSteps) return false;
  const auto count = static_cast<double>(beyond.size());
  double mean = 0, squares = 0;
  for (const double each : beyond) mean += each / count;
  for (const double each : beyond) squares += (each - mean) * (each - mean);
  return mean > kStandardErrors * std::sqrt(squares / (count - 1) / count);
}

}  // namespace

StageBalance stage_balance(std::span<const RankSteps> ranks, double least_share) {
  const StepMatrix matrix = step_matrix(ranks);
  StageBalance result;
  std::vector<std::size_t> places;  // of `result.stages` in the matrix
  double mean_s = 0;
  for (std::size_t stage = 0; stage < matrix.stages.size(); ++stage) {
    Stage each;
    each.stage = matrix.stages[stage];
    std::size_t steps = 0;
    for (const double own_s : matrix.times_of_stage(stage)) {
      if (std::isnan(own_s)) continue;
      each.own_s += own_s;
      ++steps;
    }
    for (std::size_t rank = 0; rank < matrix.ranks; ++rank) {
      if (matrix.stage_of[rank] != stage) continue;
      const auto late = matrix.late_of(rank);
      each.ranks +=
          std::any_of(late.begin(), late.end(), [](double value) { return !std::isnan(value); }) ? 1 : 0;
    }
    if (steps == 0) continue;
    each.own_s /= static_cast<double>(steps);
    mean_s += each.own_s;
    result.stages.push_back(each);
    places.push_back(stage);
  }
  if (result.stages.size() < 2) {
    result.stages.clear();
    return result;
  }
  mean_s /= static_cast<double>(result.stages.size());
  double step_s = 0;
  for (const double each : matrix.job_s) step_s += each / static_cast<double>(matrix.steps.size());
  std::size_t longest = 0;
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    Stage& stage = result.stages[i];
    stage.beyond_share = mean_s > 0 ? stage.own_s / mean_s - 1 : 0;
    if (stage.own_s > result.stages[longest].own_s) longest = i;
  }
  result.longest = result.stages[longest].stage;
  const double beyond_s = result.stages[longest].own_s - mean_s;
  if (step_s > 0) result.gain_share = beyond_s / step_s;
  result.uneven = result.gain_share > least_share && is_lasting(matrix, places[longest]);
  return result;
}

}  // namespace headrace::analysis::cluster
