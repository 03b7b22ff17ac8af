// CPU work takes longer beside CPU work: cores share caches, memory and, on some machines, their clock.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// CPU time of a piece of work while a share of the *other* cores is busy / the same on an otherwise idle
/// machine; 1 and more. With all others busy it is 1.08, within what was measured (docs/benchmarks.md, "CPU work
/// beside CPU work": 1.00 for hashing to 1.15 for JPEG in worker processes); the intervals of predictions cover the rest.
double slowdown(double others_busy_share) noexcept;

/// The same for work as it was recorded: `own_cores` is what one of its threads used of a core on average.
/// 1 where the machine's figures are unknown.
double recorded_slowdown(const profile::Host& host, double own_cores) noexcept;

}  // namespace headrace::analysis
