// CPU time and run-queue wait of the run's workers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/metrics/loop_clock.h"
#include "headrace/profile/host/kernel_text.h"
#include "headrace/profile/segment.h"
#include "host_kernel_file.h"

namespace headrace::profile {

/// Reads each live worker's schedstat and keeps WorkerCell::cpu_ns and run_queue_ns, in loop time. One thread
/// only.
///
/// The kernel brings a running thread's figure up to date at its timer tick (1 to 4 ms).
class WorkerCpuReader {
 public:
  explicit WorkerCpuReader(Segment& segment);

  /// Reads as many workers as `budget_ns` allows, going on where the last call stopped. `meet` is called once
  /// for each process other than this one whose worker is found.
  void sample(std::int64_t now, const metrics::LoopClock::Reading& reading, std::int64_t budget_ns,
              const std::function<void(int pid, std::uint64_t start)>& meet);
  /// The loop begins: every worker counts from 0.
  void begin() noexcept;

 private:
  struct Slot {
    // Cells are given out again: these three say whose the slot is.
    std::int64_t started_ns = 0;
    int pid = 0;
    int tid = 0;
    KernelFile file;
    bool verified = false;  ///< the process behind the pid is the one that registered
    bool has_baseline = false;
    std::int64_t retry_ns = 0;  ///< do not try again before
    SchedStat last;
    SchedStat total;
    std::int64_t at_ns = 0;
    std::int64_t at_loop_ns = 0;
  };

  bool read(Slot& slot, const metrics::WorkerCell& worker, std::int64_t now, SchedStat& stat,
            const std::function<void(int, std::uint64_t)>& meet);
  void add(Slot& slot, const SchedStat& stat, std::int64_t now,
           const metrics::LoopClock::Reading& reading) noexcept;
  void visit(std::uint32_t index, std::int64_t now, const metrics::LoopClock::Reading& reading,
             const std::function<void(int, std::uint64_t)>& meet);
  void let_go(Slot& slot) noexcept;

  Segment& segment_;
  std::vector<Slot> slots_;
  std::uint32_t next_ = 0;
  int kept_ = 0;  ///< descriptors open between calls
  int most_kept_ = 0;
};

}  // namespace headrace::profile
