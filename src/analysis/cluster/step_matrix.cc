#include "step_matrix.h"

#include <algorithm>
#include <cmath>
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

/// Steps without a late rank that show how long ranks wait when none is late.
constexpr std::size_t kFewestClean = 5;

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

std::vector<double> step_scale(const StepMatrix& matrix) {
  std::vector<double> scale(matrix.steps.size(), 1);
  std::vector<double> own_s;
  for (std::size_t step = 0; step < scale.size(); ++step) {
    std::vector<double> stages;
    for (std::size_t stage = 0; stage < matrix.stages.size(); ++stage) {
      if (const double each = matrix.expected_of_stage(stage)[step]; !std::isnan(each))
        stages.push_back(each);
    }
    own_s.push_back(lower_median(stages));
  }
  std::vector<double> known;
  for (const double each : own_s) {
    if (!std::isnan(each)) known.push_back(each);
  }
  const double usual_s = lower_median(known);
  for (std::size_t step = 0; step < scale.size(); ++step) {
    if (usual_s > 0 && !std::isnan(own_s[step])) scale[step] = std::clamp(own_s[step] / usual_s, 0.25, 4.0);
  }
  return scale;
}

void drop_unconfirmed(StepMatrix& matrix, double late_from_s, std::span<const double> scale) {
  const std::size_t width = matrix.steps.size();
  std::vector<double> longest(width, 0);
  for (std::size_t stage = 0; stage < matrix.stages.size(); ++stage) {
    const auto times = matrix.expected_of_stage(stage);
    for (std::size_t step = 0; step < width; ++step) longest[step] = std::fmax(longest[step], times[step]);
  }
  const auto is_late = [&](std::size_t rank, std::size_t step) {
    return matrix.late_s[rank * width + step] > late_from_s * std::max(scale[step], 1.0);
  };
  // Time a rank adds to the step beyond the longest stage.
  const auto adds_s = [&](std::size_t rank, std::size_t step) {
    return matrix.late_s[rank * width + step] + matrix.expected_of_stage(matrix.stage_of[rank])[step] -
           longest[step];
  };
  std::vector<bool> clean(width, true);
  std::vector<double> latest(width, 0);  // of the ranks that are not late
  for (std::size_t rank = 0; rank < matrix.ranks; ++rank) {
    for (std::size_t step = 0; step < width; ++step) {
      if (is_late(rank, step)) {
        clean[step] = false;
      } else {
        latest[step] = std::fmax(latest[step], adds_s(rank, step));
      }
    }
  }
  std::vector<double> rest;  // of the step: transfers, and what all ranks wait for
  for (std::size_t step = 0; step < width; ++step) {
    if (clean[step]) rest.push_back(matrix.job_s[step] - longest[step] - latest[step]);
  }
  if (rest.size() < std::max(kFewestClean, width / 4)) return;
  const double rest_s = lower_median(rest);
  for (std::size_t rank = 0; rank < matrix.ranks; ++rank) {
    for (std::size_t step = 0; step < width; ++step) {
      if (clean[step] || !is_late(rank, step)) continue;
      const double middle_s = 0.5 * (adds_s(rank, step) + latest[step]);
      if (adds_s(rank, step) > latest[step] && matrix.job_s[step] - longest[step] - rest_s < middle_s)
        matrix.late_s[rank * width + step] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

std::size_t change_of(std::span<const double> late) {
  double sum = 0;
  std::size_t count = 0;
  for (const double each : late) {
    if (!std::isnan(each)) {
      sum += each;
      ++count;
    }
  }
  double before = 0;
  std::size_t seen = 0;
  double best = 0;
  std::size_t at = 0;
  double best_before = 0, best_after = 0;
  for (std::size_t i = 0; i + 1 < late.size(); ++i) {
    if (std::isnan(late[i])) continue;
    before += late[i];
    ++seen;
    if (seen == count) break;
    const auto left = static_cast<double>(seen);
    const auto right = static_cast<double>(count - seen);
    const double difference = (sum - before) / right - before / left;
    const double weight = difference * std::sqrt(left * right / static_cast<double>(count));
    if (weight > best) {
      best = weight;
      at = i + 1;
      best_before = before / left;
      best_after = (sum - before) / right;
    }
  }
  if (at == 0) return 0;
  // The first steps of a loop are often unlike the others.
  const bool is_start = at <= late.size() / 20 + 1;
  const bool was_late = best_before > 0.25 * best_after;
  return is_start || was_late ? 0 : at;
}

std::optional<std::int64_t> period_of(const std::vector<std::int64_t>& late_steps) {
  if (late_steps.size() < 4) return std::nullopt;
  std::vector<double> distances;
  for (std::size_t i = 1; i < late_steps.size(); ++i)
    distances.push_back(static_cast<double>(late_steps[i] - late_steps[i - 1]));
  std::vector<double> copy = distances;
  const double middle = lower_median(copy);
  if (middle < 2) return std::nullopt;
  const double alike = 0.15 * middle + 0.5;
  const auto regular = std::count_if(distances.begin(), distances.end(),
                                     [&](double each) { return std::abs(each - middle) <= alike; });
  if (4 * regular < 3 * static_cast<std::ptrdiff_t>(distances.size())) return std::nullopt;
  return static_cast<std::int64_t>(middle);
}

}  // namespace headrace::analysis::cluster
