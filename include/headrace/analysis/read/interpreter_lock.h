// Whether threads of the sink's process wait for one interpreter lock (Python's GIL) rather than for data.
//
// Queue levels and wall times mislead under such a lock: a thread that waits for it looks busy, and the sink
// waits beside full queues. What does not lie is CPU time: the process as a whole gets about one core.
#pragma once

#include <optional>
#include <vector>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct InterpreterLock {
  bool contended = false;  ///< two or more threads want it at once
  int longest_holder =
      -1;  ///< index of the operator that holds it longest per batch; where nothing tells who
           ///< holds it, that with the largest CPU time among those that need it, and of two
           ///< alike, the one whose threads wait longer
  double process_cores = 0;  ///< CPU of the sink's process, in cores
  double busy_threads = 0;   ///< threads that were busy (or wanted to be) on average, the sink included
  double lock_share = -1;    ///< probes that found the lock taken; below 0: not probed
  double waiting = -1;       ///< threads that waited for it on average; below 0: nobody looked
  /// Per operator: its threads need the lock for what they compute. False for processes, for those that hardly
  /// hold it, and, where nothing tells that, for those that hardly wait for it while others do and account for
  /// the time that it is held: C code that releases it.
  std::vector<bool> needed;
  double stretch_s = 0;  ///< what the lock adds to the sink's own compute, per step
};

/// If threads were looked at (OperatorProfile::lock_wait_s, SinkProfile::compute_lock_wait_s), their waits
/// decide: those of the operator with the largest demand. Otherwise, and where a framework's event loop hands items on
/// (its waits are in no operator), probes do, if more than one thread is busy: one that spins in Python is found at
/// nearly every probe; C code that releases the lock, at next to none. Without probes, threads that compute must be off
/// the cores for a good part of their busy time. Source: measurements of 1, 2 and 4 spinning threads.
InterpreterLock read_interpreter_lock(const profile::Profile& profile, const LockThresholds& thresholds = {});

/// Time per batch for which an operator's threads hold the lock; none: nothing tells.
std::optional<double> held_per_batch_s(const profile::OperatorProfile& op) noexcept;

}  // namespace headrace::analysis
