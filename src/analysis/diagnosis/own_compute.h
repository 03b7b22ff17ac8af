// The training loop's compute without what the input's threads do to it.
#pragma once

#include "headrace/analysis/diagnosis/interpreter_lock.h"
#include "headrace/analysis/diagnosis/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Seconds a step in which the loop's own thread waited for a core, as far as this run had taken them; 0 where that is
/// within what looks at it tell.
double core_wait_s(const profile::Profile& profile, const GateThresholds& thresholds);

/// Seconds a step: its compute without waits for a core or the lock, and without what sharing them slows it down.
double own_compute_s(const profile::Profile& profile, const InterpreterLock& lock,
                     const GateThresholds& thresholds);

}  // namespace headrace::analysis
