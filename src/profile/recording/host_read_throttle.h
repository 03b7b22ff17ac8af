// Keeps the cost of reading kernel files below a fixed share of a core on any machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/metrics/clock.h"

namespace headrace::profile {

/// A read costs 1 to 4 us when it was made a moment ago, 15 to 40 us after 100 ms of other work (cold
/// caches), and hundreds where a machine has 128 CPUs or thousands of processes. Each is repeated only after
/// `kRest` times the CPU time that it took last: 0.01 % of a core.
class ReadThrottle {
 public:
  explicit ReadThrottle(std::int64_t least_ns) : least_ns_(least_ns) {}

  template <class Read>
  bool run_if_due(std::int64_t now, Read&& read) {
    if (now < due_ns_) return false;
    // CPU time, not wall time: a sampler that was preempted on a busy machine must not pause for seconds.
    const std::int64_t before = metrics::Clock::thread_cpu_ns();
    read();
    const std::int64_t cost = metrics::Clock::thread_cpu_ns() - before;
    due_ns_ = now + std::clamp(cost * kRest, least_ns_, std::max(least_ns_, kLongestNs));
    return true;
  }

 private:
  static constexpr std::int64_t kRest = 10'000;
  static constexpr std::int64_t kLongestNs = 10'000'000'000;
  std::int64_t least_ns_;
  std::int64_t due_ns_ = 0;
};

}  // namespace headrace::profile
