// Use of the cores: other processes, the run's threads that are recorded, and those that are not.
#pragma once

#include <algorithm>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Share of the cores that others used as far as they and this run together exceeded them, 0 to 1; 0 where
/// that is not known. (The recorder takes it per tenth of a second: neighbours of a run that sleeps count
/// little.)
///
/// How to read it: above 0.05 predictions hold only while others go on as they did.
inline double disturbance(const profile::Host& host) noexcept {
  return host.foreign_contention_share.value_or(0);
}

inline constexpr double kDisturbed = 0.05;

/// Cores that a run may use, from the pessimistic to the optimistic end.
struct FreeCores {
  double held = 0;     ///< other processes keep every core that they used
  double yielded = 0;  ///< the scheduler takes back what they only had because this run left it idle
};

/// `otherwise`: the number of cores where it is unknown. Both are at least what the run itself used.
inline FreeCores free_cores(const profile::Host& host, double otherwise) noexcept {
  constexpr double kMin = 0.25;
  const double cores = host.cores > 0 ? host.cores : otherwise;
  const double used = std::max(kMin, host.cpu_share.value_or(0) * cores);
  const double yielded = cores * (1 - disturbance(host));
  const double held = cores * (1 - std::max(host.foreign_cpu_share.value_or(0), disturbance(host)));
  return {std::max(used, held), std::max(used, yielded)};
}

/// The CPU quota stops the run so often that it is the limit.
inline bool is_throttled(const profile::Host& host, const CpuThresholds& thresholds = {}) noexcept {
  return host.throttled_share.value_or(0) >= thresholds.throttled_share;
}

/// Others use so much that a run with more work to do finds fewer cores than it sees.
inline bool has_neighbours(const profile::Host& host) noexcept {
  return disturbance(host) >= kDisturbed || host.foreign_cpu_share.value_or(0) >= kHardly;
}

/// How many times longer a piece of work takes in CPU time while a share of the *other* cores is busy than on
/// an otherwise idle machine. 1.08 with all others busy, within what was measured (docs/benchmarks.md, "CPU
/// work beside CPU work": 1.00 for hashing to 1.15 for JPEG in worker processes). The intervals of predictions
/// cover the rest.
double slowdown(double others_busy_share) noexcept;

/// `slowdown` of recorded work: `own_cores` is what one of its threads used of a core on average.
/// 1 where the machine's figures are unknown.
double recorded_slowdown(const profile::Host& host, double own_cores) noexcept;

/// CPU time per step of the loop's process in no recorded thread, on an otherwise idle machine.
double pool_work_s(const profile::Profile& profile);

/// Seconds per step: the process's CPU time less that of the loop's thread and of the operators in its threads. One whose
/// CPU time is not known counts with all its time. 0 where that leaves less than a tenth of a step (Python's other
/// threads, the differences between clocks).
double pool_cpu_s(const profile::Profile& profile);

/// `pool_cpu_s` / the CPU time of the process, 0 to 1.
double pool_share_of_process(const profile::Profile& profile);

/// Pools' share of the CPU time of the run's other processes: its workers. 0 where no operator runs in a
/// process, and where the CPU time of one that does is not known.
double pool_share_of_workers(const profile::Profile& profile);

/// Their CPU time, in the threads that run operators and in all others.
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
