// Ranks against steps: own times, how late each rank is in each step, and when a rank is late.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "headrace/analysis/cluster/slow_ranks.h"

namespace headrace::analysis::cluster {

/// Lower median; reorders the values. NaN of none.
inline double lower_median(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median absolute deviation, scaled to the standard deviation of a normal distribution.
inline double spread_of(std::vector<double> values) {
  if (values.size() < 2) return 0;
  std::vector<double> copy = values;
  const double middle = lower_median(copy);
  for (double& each : values) each = std::abs(each - middle);
  return 1.4826 * lower_median(values);
}

struct StepMatrix {
  std::vector<std::int64_t> steps;  ///< ascending
  std::size_t ranks = 0;
  std::vector<double> late_s;         ///< rank by rank; NaN: not known
  std::vector<double> job_s;          ///< by step: the ranks' median, but not less than the longest own time
  std::vector<std::int64_t> stages;   ///< ascending
  std::vector<std::size_t> stage_of;  ///< by rank: index into `stages`
  std::vector<double> stage_s;        ///< stage by stage: median own time in each step; NaN: not known
  /// Stage by stage: own time of a rank that is not late. The median of all ranks in the step, times the stage's
  /// share of the work.
  std::vector<double> expected_s;

  std::span<const double> late_of(std::size_t rank) const {
    return std::span(late_s).subspan(rank * steps.size(), steps.size());
  }
  std::span<const double> times_of_stage(std::size_t stage) const {
    return std::span(stage_s).subspan(stage * steps.size(), steps.size());
  }
  std::span<const double> expected_of_stage(std::size_t stage) const {
    return std::span(expected_s).subspan(stage * steps.size(), steps.size());
  }
};

/// Steps that at least half of the ranks with steps have.
StepMatrix step_matrix(std::span<const RankSteps> ranks);

/// Matrix of given steps, ascending.
StepMatrix step_matrix(std::span<const RankSteps> ranks, std::vector<std::int64_t> steps);

/// The ranks' own time in each step that is normal, as a share of the median over steps; 0.25 to 4.
std::vector<double> step_scale(const StepMatrix& matrix);

/// Makes steps unknown in which a rank seems late but the job's step is closer to that without it: a collective of
/// that rank was not recorded, so its wait counts as its own time. How long a step is beyond its latest rank is known
/// from the steps in which no rank is late; without enough of these nothing changes. `late_from_s`: of a step of
/// usual length; `scale`: as above.
void drop_unconfirmed(StepMatrix& matrix, double late_from_s, std::span<const double> scale);

/// Position where the mean changes most, the first of the second part. 0: it does not, or the part before is a
/// quarter as late or more.
std::size_t change_of(std::span<const double> late);

/// The distance of late steps if at least three distances are alike.
std::optional<std::int64_t> period_of(const std::vector<std::int64_t>& late_steps);

}  // namespace headrace::analysis::cluster
