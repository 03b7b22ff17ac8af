// Rows that stand for several parts of a profile: queues of a kind, the operators of a worker, an operator's states
// without those of others in its thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

// --- queues ---

/// Queues of one kind that every worker has (index[0], index[1], ...), more than `most_equal` of them, are
/// one group under a name of its own; every other queue is one alone.
struct QueueGroup {
  std::string name;
  std::vector<std::size_t> members;  ///< places in Profile::queues
};
std::vector<QueueGroup> queue_groups(const std::vector<profile::QueueProfile>& queues,
                                     std::size_t most_equal = 4);

/// The groups as queues: shares and levels are means, counts and waits are sums.
std::vector<profile::QueueProfile> folded(const std::vector<profile::QueueProfile>& queues,
                                          std::size_t most_equal = 4);

// --- workers ---

/// The states of one operator, with the time that its workers spend in other operators of the same thread
/// apart from the time in which they wait.
struct ShownStates {
  double busy = 0;
  double elsewhere = 0;    ///< in other operators of the thread, before and after this one
  double blocked_in = 0;   ///< waiting for input
  double blocked_out = 0;  ///< nowhere to put what they made
  bool known = false;
};

ShownStates shown_states(const profile::Profile& profile, std::size_t index);

/// Whether any operator shares its thread, so that `elsewhere` says something.
bool any_elsewhere(const profile::Profile& profile);

/// A worker process of a framework's loader.
struct WorkerRow {
  int id = 0;         ///< the loader's own number
  std::string shard;  ///< "2 of 4" of a stream that is split over them; else ""
  double batches = 0;
  double busy_s = 0;
  double cpu_s = 0;
  bool cpu_known = true;
  profile::States states;  ///< of the worker: busy in any of its operators

  double batch_s() const { return batches > 0 ? busy_s / batches : 0; }
};

/// By number; empty if the loader has no worker processes.
std::vector<WorkerRow> worker_rows(const profile::Profile& profile);

}  // namespace headrace::report
