// Kernel counters of the threads of the run's workers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "headrace/metrics/loop_clock.h"
#include "headrace/profile/segment.h"

namespace headrace::profile {

/// The files' current figures.
struct WorkerGlance {
  char state = 0;   ///< of the thread; 0: the file does not say
  int threads = 0;  ///< of the process; 0: the file does not say
};

/// Reads files of /proc/<pid>/task/<tid> of each live worker and keeps the counters of its WorkerCell, in
/// loop time. One thread only.
///
/// The kernel brings a running thread's CPU time up to date at its timer tick (1 to 4 ms).
class WorkerCpuReader {
 public:
  explicit WorkerCpuReader(Segment& segment);
  ~WorkerCpuReader();

  /// Reads as many workers as `budget_ns` allows, going on where the last call stopped. `meet` is called once
  /// for each process other than this one whose worker is found.
  void sample(std::int64_t now, const metrics::LoopClock::Reading& reading, std::int64_t budget_ns,
              const std::function<void(int pid, std::uint64_t start)>& meet);
  /// The loop begins: every worker counts from 0.
  void begin() noexcept;

 private:
  struct Slot;

  bool open(Slot& slot, std::size_t source, const metrics::WorkerCell& worker,
            const std::function<void(int, std::uint64_t)>& meet);
  bool read(Slot& slot, std::size_t source, const metrics::WorkerCell& worker, std::int64_t now,
            const std::function<void(int, std::uint64_t)>& meet);
  void visit(std::uint32_t index, std::int64_t now, const metrics::LoopClock::Reading& reading,
             const std::function<void(int, std::uint64_t)>& meet);
  void note(const Slot& slot, std::uint32_t account, const metrics::LoopClock::Reading& reading,
            metrics::WorkerCell& worker);
  void let_go(Slot& slot) noexcept;

  Segment& segment_;
  std::unique_ptr<Slot[]> slots_;
  std::uint32_t next_ = 0;
  int kept_ = 0;  ///< descriptors open between calls
  int most_kept_ = 0;
};

}  // namespace headrace::profile
