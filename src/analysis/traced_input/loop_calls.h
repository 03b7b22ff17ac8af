// The training loop's steps and the levels of queues, from what a trace shows of each call.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// One call for a batch.
struct LoopCall {
  double start_s = 0;
  double wait_s = 0;
  bool ready = false;  ///< the batch was there

  double end_s() const noexcept { return start_s + wait_s; }
};

/// Fills `sink`, `startup`, `elapsed_s` and `epochs` from calls in the order of time. The first is start-up;
/// a step is from the end of one call to the end of the next.
void add_calls(const std::vector<LoopCall>& calls, profile::Profile& profile);

/// Fills the queue's histogram; no level is negative.
void add_levels(const std::vector<std::int64_t>& levels, profile::QueueProfile& queue);

}  // namespace headrace::analysis
