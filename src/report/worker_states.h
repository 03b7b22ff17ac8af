// Worker states: each operator's without the time in others of its thread, each process' with its operators in turn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

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
