// Cost of passing a batch to another thread or process where it was never measured: the loop has no worker
// yet. Lower bounds of what was measured on idle machines.
#pragma once

namespace headrace::analysis {

/// Through a queue between two threads of a process.
inline constexpr double kThreadHandoff_s = 1e-4;
/// From a worker process: one tensor, by file descriptor.
inline constexpr double kProcessHandoff_s = 1e-3;

}  // namespace headrace::analysis
