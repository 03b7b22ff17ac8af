// Whether the stages of a job's pipeline take equally long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/analysis/cluster/slow_ranks.h"

namespace headrace::analysis::cluster {

struct Stage {
  std::int64_t stage = 0;
  std::size_t ranks = 0;  ///< with steps in common with the job
  double own_s = 0;       ///< mean over steps of the median own time of its ranks
  /// Beyond the mean of the stages, as a share of it. 0.2: the stage has 20 % more than an even share of the work.
  double beyond_share = 0;
};

struct StageBalance {
  std::vector<Stage> stages;  ///< ascending; empty if the ranks are of one stage
  /// The longest stage is beyond the others by `least_share` of the job's step, and by four standard errors.
  bool uneven = false;
  std::int64_t longest = 0;
  /// Share of the job's step that ends if all stages take as long as their mean: the work stays the same.
  double gain_share = 0;
};

/// Pure; thread-safe. A stage is compared by the median of its ranks, so one slow rank does not make it long;
/// of stages with two ranks the lower counts.
StageBalance stage_balance(std::span<const RankSteps> ranks, double least_share = 0.05);

}  // namespace headrace::analysis::cluster
