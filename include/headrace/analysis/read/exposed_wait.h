// The part of the time in which a loop waited for its input, and nothing hid that.
#pragma once

#include "headrace/profile/loop_totals.h"

namespace headrace::analysis {

struct ExposedWait {
  double share = 0;   ///< of the time; 0: the input is free, 1: the loop only waited
  double over_s = 0;  ///< how long that time is; 0: nothing is known
};

/// GetNext wait between two moments of a loop, as a share of the time that passed meanwhile, evaluation and
/// checkpoints included. Waits while an asynchronous device was still busy with the steps before are left out, where
/// marks in its queue show that. Pure; thread-safe.
ExposedWait exposed_wait(const profile::LoopTotals& since, const profile::LoopTotals& now);

/// Exposed wait of the last minute, or of the last 512 steps if shorter, from `now` alone: of the time in
/// which the loop ran.
ExposedWait exposed_wait(const profile::LoopTotals& now);

}  // namespace headrace::analysis
