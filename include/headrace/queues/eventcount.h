// Sleeping until something may have changed, without losing the wake-up in between.
#pragma once

#include <chrono>
#include <cstdint>

#include "headrace/queues/futex_word.h"

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
/// `Word` is a FutexWord, or what a test puts in its place.
template <class Word>
class BasicEventCount {
 public:
  using Clock = FutexWord::Clock;
  using Ticket = std::uint32_t;

  Ticket prepare() noexcept {
    const Ticket ticket = epoch_of(state_.fetch_add(kOneWaiter));
    // With the notifier's fence: either the notifier sees this waiter, or this waiter's second look at the
    // condition, whatever its memory order, sees the notifier's change.
    state_.fence();
    return ticket;
  }

  /// Gives the ticket back unused.
  void cancel(Ticket ticket) noexcept { leave(ticket); }

  /// Sleeps until a notification after `ticket`, the deadline, or a signal. Uses the ticket up. May return
  /// `notified` without cause: look at the condition again. After `timed_out`, too: the notification may have
  /// come at the same moment, and nobody else was woken by it.
  Wake wait(Ticket ticket, Clock::time_point deadline) noexcept {
    while (epoch_of(state_.load()) == ticket) {
      switch (state_.sleep_while(ticket, deadline)) {
        case Sleep::woken:
          return Wake::notified;
        case Sleep::changed:
          break;
        case Sleep::timed_out:
          leave(ticket);
          return Wake::timed_out;
        case Sleep::interrupted:
          leave(ticket);
          return Wake::interrupted;
      }
    }
    return Wake::notified;
  }

  void notify_one() noexcept {
    state_.fence();
    std::uint64_t state = state_.load();
    do {
      if (waiters_of(state) == 0) return;
    } while (!state_.compare_exchange(state, next_epoch(state) - kOneWaiter));
    state_.wake(1);
  }

  void notify_all() noexcept {
    state_.fence();
    std::uint64_t state = state_.load();
    do {
      if (waiters_of(state) == 0) return;
    } while (!state_.compare_exchange(state, std::uint64_t{epoch_of(next_epoch(state))}));
    state_.wake(1 << 30);
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
    std::uint64_t state = state_.load();
    do {
      if (epoch_of(state) != ticket || waiters_of(state) == 0) return;
    } while (!state_.compare_exchange(state, state - kOneWaiter));
  }

  Word state_;
};

using EventCount = BasicEventCount<FutexWord>;

}  // namespace headrace::queues
