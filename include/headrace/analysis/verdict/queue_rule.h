// Left high, right low: the operator whose input waits in front of it and whose output is awaited.
#pragma once

#include <optional>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct QueueOpinion {
  int op = -1;  ///< index of the operator it points at; below 0: abstains
  /// How full the queues before and behind it are, 0 to 1; none: there is no such queue, or no operator.
  std::optional<double> left;
  std::optional<double> right;
  Evidence evidence;
};

/// Walks from the sink upstream while queues are low. "Low" is relative to what the operator to its right
/// takes per call: a batch of 32 drains a queue of 16 by design, so such a queue is judged by whether its
/// producer is blocked. Assumes that the sink starves: without that, low queues mean nothing (a healthy batch
/// operator shows them too).
QueueOpinion judge_queues(const profile::Profile& profile, const CandidateThresholds& thresholds);

}  // namespace headrace::analysis
