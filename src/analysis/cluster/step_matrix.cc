#include "step_matrix.h"

#include <unordered_map>

namespace headrace::analysis::cluster {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool is_usable(const RankSteps& rank) {
  return !rank.step.empty() && rank.step.size() == rank.total_s.size() &&
         rank.step.size() == rank.own_s.size();
}

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

}  // namespace

StepMatrix step_matrix(std::span<const RankSteps> ranks) {
  std::unordered_map<std::int64_t, std::size_t> counts;
  std::size_t usable = 0;
  for (const RankSteps& rank : ranks) {
    if (!is_usable(rank)) continue;
    ++usable;
    for (std::size_t i = 0; i < rank.step.size(); ++i) {
      if (is_time(rank.total_s[i]) && is_time(rank.own_s[i])) ++counts[rank.step[i]];
    }
  }
  std::vector<std::int64_t> steps;
  for (const auto& [step, count] : counts) {
    if (2 * count >= usable) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return step_matrix(ranks, std::move(steps));
}

StepMatrix step_matrix(std::span<const RankSteps> ranks, std::vector<std::int64_t> steps) {
  StepMatrix matrix;
  matrix.steps = std::move(steps);
  matrix.ranks = ranks.size();
  const std::size_t width = matrix.steps.size();
  matrix.late_s.assign(ranks.size() * width, kUnknown);
  std::vector<double> total_s(ranks.size() * width, kUnknown);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankSteps& rank = ranks[r];
    if (!is_usable(rank)) continue;
    for (std::size_t i = 0; i < rank.step.size(); ++i) {
      const auto found = std::lower_bound(matrix.steps.begin(), matrix.steps.end(), rank.step[i]);
      if (found == matrix.steps.end() || *found != rank.step[i]) continue;
      if (!is_time(rank.total_s[i]) || !is_time(rank.own_s[i])) continue;
      const auto at = r * width + static_cast<std::size_t>(found - matrix.steps.begin());
      matrix.late_s[at] = rank.own_s[i];
      total_s[at] = rank.total_s[i];
    }
  }
  std::vector<double> column;
  const auto median_of = [&](const std::vector<double>& values, std::size_t step) {
    column.clear();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!std::isnan(values[r * width + step])) column.push_back(values[r * width + step]);
    }
    return lower_median(column);
  };
  for (std::size_t step = 0; step < width; ++step) {
    double longest_s = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      longest_s = std::fmax(longest_s, matrix.late_s[r * width + step]);
    const double median_s = median_of(total_s, step);
    matrix.job_s.push_back(std::isnan(median_s) ? 0 : std::max(median_s, longest_s));
    const double own_s = median_of(matrix.late_s, step);
    for (std::size_t r = 0; r < ranks.size(); ++r) matrix.late_s[r * width + step] -= own_s;
  }
  return matrix;
}

std::vector<double> lateness(std::span<const RankSteps> ranks, std::span<const std::int64_t> steps) {
  std::vector<std::int64_t> sorted(steps.begin(), steps.end());
  std::sort(sorted.begin(), sorted.end());
  return step_matrix(ranks, std::move(sorted)).late_s;
}

}  // namespace headrace::analysis::cluster
