// CPU, quota, pressure and memory of the machine and of this run's process tree.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/profile/segment.h"

namespace headrace::profile {

/// Reads the kernel's counters through descriptors that stay open (a read costs 1 to 4 us, an open 6 to 9)
/// and adds what passed to the segment's HostCell and to the worker cells' cpu_ns and run_queue_ns. One
/// thread only.
///
/// Figures that this machine lacks (no PSI, no cgroup, no schedstat) stay unknown, never 0.
class HostSampler {
 public:
  explicit HostSampler(Segment& segment);
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  /// One sample. `now` is Clock::now_ns(). Called about every 100 ms while a loop runs.
  void sample(std::int64_t now) noexcept;

  /// CPU time of the run's other ranks on this machine so far, ns; taken in with the next sample.
  void set_other_ranks_cpu(std::int64_t total_ns) noexcept;

  /// Cores that the sink's own process used in the last interval; 0 before the second sample.
  double process_cores() const noexcept;
  /// Nearly every core that the process may use was busy in the last interval, whoever used it. False where a
  /// quota ends before the cores do.
  bool cores_are_full() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::profile
