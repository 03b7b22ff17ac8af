// Sleeping until something may have changed, without losing the wake-up in between.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace::queues {

enum class Wake { notified, timed_out, interrupted };

/// A futex with a ticket. The waiter takes a ticket, looks at its condition once more, and sleeps only if nobody
/// notified since the ticket; the notifier changes the condition first and pays one load while nobody waits.
///
///     for (;;) {
///       const auto ticket = event.prepare();
///       if (ready()) { event.cancel(); break; }
///       event.wait(ticket, deadline);
///     }
///
/// Thread-safe. `interrupted`: a signal handler ran in this thread (Python then looks for KeyboardInterrupt).
class EventCount {
 public:
  using Clock = std::chrono::steady_clock;
  using Ticket = std::uint32_t;

  Ticket prepare() noexcept {
    // Sequentially consistent: the waiter's count is seen by every notifier that the condition's re-check misses.
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    return epoch_.load(std::memory_order_seq_cst);
  }
  void cancel() noexcept { waiters_.fetch_sub(1, std::memory_order_relaxed); }

  /// Sleeps until a notification after `ticket`, the deadline, or a signal. Ends the `prepare`.
  Wake wait(Ticket ticket, Clock::time_point deadline) noexcept;

  void notify_one() noexcept { notify(1); }
  void notify_all() noexcept { notify(1 << 30); }

 private:
  void notify(int count) noexcept {
    // The fence orders the caller's change of the condition before the look at the waiters (see prepare).
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    wake(count);
  }
  void wake(int count) noexcept;

  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint32_t> waiters_{0};
};

}  // namespace headrace::queues
