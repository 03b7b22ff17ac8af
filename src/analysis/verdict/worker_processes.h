// The CPU time of worker processes, in the threads that run operators and in all others.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct WorkerProcesses {
  double cpu_s = 0;         ///< of all their threads
  double in_workers_s = 0;  ///< of that, in the threads that run operators
  int count = 0;
  double threads = 0;  ///< in one of them, at most

  /// Share of the CPU time in threads that run no operator (those of libraries); 0 for one process, which is meant
  /// to compute in several threads.
  double elsewhere_share() const noexcept;
};

WorkerProcesses worker_processes(const profile::Profile& profile);

}  // namespace headrace::analysis
