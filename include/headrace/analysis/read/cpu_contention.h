// CPU work takes longer beside CPU work: cores share caches, memory and, on some machines, their clock.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// How many times longer a piece of work takes in CPU time while a share of the *other* cores is busy than on
/// an otherwise idle machine. 1.08 with all others busy, within what was measured (docs/benchmarks.md, "CPU
/// work beside CPU work": 1.00 for hashing to 1.15 for JPEG in worker processes). The intervals of predictions
/// cover the rest.
double slowdown(double others_busy_share) noexcept;

/// The same for work as it was recorded: `own_cores` is what one of its threads used of a core on average.
/// 1 where the machine's figures are unknown.
double recorded_slowdown(const profile::Host& host, double own_cores) noexcept;

/// CPU time per step of the loop's process in no recorded thread (pool_threads.h), on an otherwise idle machine.
double pool_work_s(const profile::Profile& profile);

}  // namespace headrace::analysis
