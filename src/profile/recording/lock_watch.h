// Counts how often threads of this process wait for the interpreter lock, or hold it, while they compute.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "headrace/profile/awaited_futex.h"
#include "headrace/profile/segment.h"

namespace headrace::profile {

/// Looks at each thread that runs an operator or computes in a training loop. Looks come at times that do not
/// depend on what the threads do, so the share of looks that find a thread waiting is the share of its time.
/// Counts go into the operator's cell or the sink's. A thread of a library takes the lock before its operator
/// begins: while it waits between two calls, that counts for the operator that it was last seen in. Used by
/// one thread, the sampler. `lock`: address of the futex on which threads wait for the lock. `holder`: the
/// thread that holds it; 0: nobody; none: not known.
class LockWatch {
 public:
  explicit LockWatch(Segment& segment) : segment_(segment) {}

  void look_at_operators(std::uintptr_t lock, std::optional<int> holder);
  void look_at_loops(std::uintptr_t lock, std::optional<int> holder);

 private:
  /// Threads beyond are not looked at; their operators' figures come from the others.
  static constexpr std::size_t kMaxThreads = 64;

  struct Thread {
    int tid = 0;
    std::int64_t started_ns = 0;
    AwaitedFutex awaited;
    std::uint32_t last_operator = 0;  ///< its account; 0: not seen in one yet
  };

  Thread* find(const metrics::WorkerCell& worker) noexcept;
  Thread* find_or_add(const metrics::WorkerCell& worker);
  static ThreadLook look_at(Thread* thread);

  Segment& segment_;
  std::array<Thread, kMaxThreads> threads_;
};

}  // namespace headrace::profile
