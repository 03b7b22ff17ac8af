// The worker processes of a framework's loader, each as one row: their operators run in turn.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

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
