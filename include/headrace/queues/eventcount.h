// Sleeping until something may have changed, without losing the wake-up in between.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace::queues {

enum class Wake { notified, timed_out, interrupted };

/// A futex with a ticket. The waiter takes a ticket, looks at its condition once more, and sleeps only if
/// nobody notified since the ticket; the notifier changes the condition first and pays one load while nobody
/// waits.
///
///     for (;;) {
///       const auto ticket = event.prepare();
///       if (ready()) { event.cancel(ticket); break; }
///       event.wait(ticket, deadline);
///     }
///
/// The notifier takes the waiter that it wakes off the count, so a waiter that is slow to run is woken by one
/// system call, not by one per item. The count may therefore be too high for a moment (a needless wake),
/// never too low.
///
/// Thread-safe. `interrupted`: a signal handler ran in this thread (Python then looks for KeyboardInterrupt).
class EventCount {
 public:
  using Clock = std::chrono::steady_clock;
  using Ticket = std::uint32_t;

  Ticket prepare() noexcept {
    // Sequentially consistent, as is the notifier's fence: either the notifier sees this waiter, or this
    // waiter's second look at the condition sees the notifier's change.
    return epoch_of(state_.fetch_add(kOneWaiter, std::memory_order_seq_cst));
  }

  /// Gives the ticket back unused.
  void cancel(Ticket ticket) noexcept { leave(ticket); }

  /// Sleeps until a notification after `ticket`, the deadline, or a signal. Uses the ticket up. May return
  /// `notified` without cause: look at the condition again.
  Wake wait(Ticket ticket, Clock::time_point deadline) noexcept;

  void notify_one() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::uint64_t state = state_.load(std::memory_order_seq_cst);
    do {
      if (waiters_of(state) == 0) return;
    } while (!state_.compare_exchange_weak(state, next_epoch(state) - kOneWaiter, std::memory_order_seq_cst));
    wake(1);
  }

  void notify_all() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::uint64_t state = state_.load(std::memory_order_seq_cst);
    do {
      if (waiters_of(state) == 0) return;
    } while (!state_.compare_exchange_weak(state, std::uint64_t{epoch_of(next_epoch(state))},
                                           std::memory_order_seq_cst));
    wake(1 << 30);
  }

 private:
  // One word, so that epoch and count change together: low half the epoch (the futex), high half the waiters.
  static constexpr std::uint64_t kOneWaiter = std::uint64_t{1} << 32;
  static constexpr Ticket epoch_of(std::uint64_t state) noexcept { return static_cast<Ticket>(state); }
  static constexpr std::uint32_t waiters_of(std::uint64_t state) noexcept {
    return static_cast<std::uint32_t>(state >> 32);
  }
  static constexpr std::uint64_t next_epoch(std::uint64_t state) noexcept {
    return (state & ~std::uint64_t{0xFFFFFFFF}) | static_cast<std::uint32_t>(epoch_of(state) + 1);
  }

  /// Takes this waiter off the count unless somebody was notified since its ticket: it may have been this
  /// one.
  void leave(Ticket ticket) noexcept {
    std::uint64_t state = state_.load(std::memory_order_seq_cst);
    do {
      if (epoch_of(state) != ticket || waiters_of(state) == 0) return;
    } while (!state_.compare_exchange_weak(state, state - kOneWaiter, std::memory_order_seq_cst));
  }

  std::uint32_t* futex_word() noexcept;
  void wake(int count) noexcept;

  std::atomic<std::uint64_t> state_{0};
};

}  // namespace headrace::queues
