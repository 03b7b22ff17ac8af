#include "step_matrix.h"

#include <unordered_map>

namespace headrace::analysis::cluster {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool is_usable(const RankSteps& rank) {
  return !rank.step.empty() && rank.step.size() == rank.total_s.size() &&
         rank.step.size() == rank.own_s.size();
}

/// The work of each stage as a share of the mean of the stages; 1 of a single one and where it is unknown.
std::vector<double> shares_of_stages(const StepMatrix& matrix) {
  const std::size_t width = matrix.steps.size();
  const std::size_t count = matrix.stages.size();
  std::vector<double> shares(count, 1);
  std::vector<std::vector<double>> found(count);
  for (std::size_t step = 0; count > 1 && step < width; ++step) {
    double sum = 0;
    for (std::size_t stage = 0; stage < count; ++stage) sum += matrix.stage_s[stage * width + step];
    for (std::size_t stage = 0; sum > 0 && stage < count; ++stage)
      found[stage].push_back(matrix.stage_s[stage * width + step] / sum * static_cast<double>(count));
  }
  for (std::size_t stage = 0; stage < count; ++stage) {
    if (const double share = lower_median(found[stage]); share > 0) shares[stage] = share;
  }
  return shares;
}

/// Own times become lateness. All ranks tell how long a step is, because a stage may have two.
void expect(StepMatrix& matrix) {
  const std::size_t width = matrix.steps.size();
  const std::vector<double> shares = shares_of_stages(matrix);
  matrix.expected_s.assign(matrix.stages.size() * width, kUnknown);
  std::vector<double> own;
  for (std::size_t step = 0; step < width; ++step) {
    own.clear();
    for (std::size_t r = 0; r < matrix.ranks; ++r) {
      const double own_s = matrix.late_s[r * width + step];
      if (!std::isnan(own_s)) own.push_back(own_s / shares[matrix.stage_of[r]]);
    }
    const double median_s = lower_median(own);
    for (std::size_t stage = 0; stage < shares.size(); ++stage)
      matrix.expected_s[stage * width + step] = median_s * shares[stage];
    for (std::size_t r = 0; r < matrix.ranks; ++r)
      matrix.late_s[r * width + step] -= matrix.expected_s[matrix.stage_of[r] * width + step];
  }
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
  for (const RankSteps& rank : ranks) matrix.stages.push_back(rank.stage);
  std::sort(matrix.stages.begin(), matrix.stages.end());
  matrix.stages.erase(std::unique(matrix.stages.begin(), matrix.stages.end()), matrix.stages.end());
  for (const RankSteps& rank : ranks) {
    const auto at = std::lower_bound(matrix.stages.begin(), matrix.stages.end(), rank.stage);
    matrix.stage_of.push_back(static_cast<std::size_t>(at - matrix.stages.begin()));
  }
  matrix.stage_s.assign(matrix.stages.size() * width, kUnknown);
  std::vector<double> total;
  std::vector<std::vector<double>> own(matrix.stages.size());
  for (std::size_t step = 0; step < width; ++step) {
    double longest_s = 0;
    total.clear();
    for (std::vector<double>& each : own) each.clear();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double own_s = matrix.late_s[r * width + step];
      if (std::isnan(own_s)) continue;
      longest_s = std::fmax(longest_s, own_s);
      total.push_back(total_s[r * width + step]);
      own[matrix.stage_of[r]].push_back(own_s);
    }
    const double median_s = lower_median(total);
    matrix.job_s.push_back(std::isnan(median_s) ? 0 : std::max(median_s, longest_s));
    for (std::size_t stage = 0; stage < own.size(); ++stage)
      matrix.stage_s[stage * width + step] = lower_median(own[stage]);
  }
  expect(matrix);
  return matrix;
}

std::vector<double> lateness(std::span<const RankSteps> ranks, std::span<const std::int64_t> steps) {
  std::vector<std::int64_t> sorted(steps.begin(), steps.end());
  std::sort(sorted.begin(), sorted.end());
  return step_matrix(ranks, std::move(sorted)).late_s;
}

}  // namespace headrace::analysis::cluster
