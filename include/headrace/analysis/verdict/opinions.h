// Second opinions beside the simulation: what the levels of the queues say, and what the awaited batch was doing.
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

struct LedgerOpinion {
  int op = -1;             ///< the operator with most of the wait; below 0: abstains (half of it is unknown)
  double known_share = 0;  ///< of the wait
  Evidence evidence;
};

LedgerOpinion judge_ledger(const profile::Profile& profile);

/// Share of the GetNext wait that the ledger charges to one operator; below 0: the ledger is empty.
double charged_share(const profile::Profile& profile, const std::string& op);

}  // namespace headrace::analysis
