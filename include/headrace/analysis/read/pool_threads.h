// CPU time that no recorded thread used: thread pools of BLAS or OpenMP, the thread that computes gradients.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Seconds per step: the process's CPU time less that of the loop's thread and of the operators in its threads. One whose
/// CPU time is not known counts with all its time. 0 where that leaves less than a tenth of a step (Python's other
/// threads, the differences between clocks).
double pool_cpu_s(const profile::Profile& profile);

/// Share of CPU time from which on such threads matter: whose work that is, and what a change would gain, is not known.
inline constexpr double kMuchInPools = 0.25;

/// `pool_cpu_s` / the CPU time of the process, 0 to 1.
double pool_share_of_process(const profile::Profile& profile);

/// The same share of the CPU time of the run's other processes: its workers. 0 where no operator runs in a
/// process, and where the CPU time of one that does is not known.
double pool_share_of_workers(const profile::Profile& profile);

}  // namespace headrace::analysis
