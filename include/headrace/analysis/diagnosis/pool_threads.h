// CPU time of the training loop's process that no recorded thread used: thread pools of BLAS or OpenMP, the thread
// that computes gradients.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Seconds per step: the process's CPU time less that of the loop's thread and of
/// the operators in its threads. 0 where that is less than a tenth of a step (Python's other threads, the
/// differences between clocks), and where a thread operator's CPU time is not known.
double pool_cpu_s(const profile::Profile& profile);

}  // namespace headrace::analysis
