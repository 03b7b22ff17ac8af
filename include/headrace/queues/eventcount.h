// Sleeping until something may have changed, without losing the wake-up in between.
#pragma once

#include <chrono>
#include <cstdint>

#include "headrace/queues/futex_word.h"

namespace headrace::queues {

enum class Wake { notified, timed_out, interrupted };

/// A futex with a ticket. The waiter takes a ticket, checks its condition again, and sleeps only if no
/// notification came since the ticket. The notifier changes the condition first and pays one load while there
/// are no waiters.
///
///     for (;;) {
///       const auto ticket = event.prepare();
///       if (ready()) { event.cancel(ticket); break; }
///       event.wait(ticket, deadline);
///     }
///
/// The notifier counts its wake-ups. While all waiters are woken but have not run yet, it wakes none, so a
/// waiter that is slow to run costs one system call, not one per item. A waiter subtracts itself and one
/// wake-up when it leaves, however it leaves. So too few wake-ups may be counted (a needless system call),
/// never too many, and both counts stay below the number of threads, of which at most 65,535 may wait at
/// once.
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

  /// Returns the ticket unused.
  void cancel(Ticket) noexcept { leave(); }

  /// Sleeps until a notification after `ticket`, the deadline, or a signal. Uses the ticket up. May return
  /// `notified` without cause: look at the condition again. After `timed_out`, too: the notification may have
  /// come at the same moment, and no other thread was woken by it.
  Wake wait(Ticket ticket, Clock::time_point deadline) noexcept {
    const Wake wake = sleep(ticket, deadline);
    leave();
    return wake;
  }

  void notify_one() noexcept {
    state_.fence();
    std::uint64_t state = state_.load();
    do {
      if (called_of(state) >= waiters_of(state)) return;
    } while (!state_.compare_exchange(state, with_next_epoch(state) + kOneCall));
    state_.wake(1);
  }

  void notify_all() noexcept {
    state_.fence();
    std::uint64_t state = state_.load();
    do {
      if (called_of(state) >= waiters_of(state)) return;
    } while (!state_.compare_exchange(state, with_all_called(with_next_epoch(state))));
    state_.wake(1 << 30);
  }

 private:
  // One word, so that all three change together:
  //
  //     bits  0-31  epoch: changes with every call; the futex
  //          32-47  waiters: tickets given out and not used up
  //          48-63  called: calls that no waiter has taken off yet
  //
  // Whoever sleeps and is not called is among waiters - called: a call changes the epoch, so that only
  // sleepers are left who do not know of it, and wakes one of them.
  static constexpr std::uint64_t kOneWaiter = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kOneCall = std::uint64_t{1} << 48;
  static constexpr Ticket epoch_of(std::uint64_t state) noexcept { return static_cast<Ticket>(state); }
  static constexpr std::uint64_t waiters_of(std::uint64_t state) noexcept { return state >> 32 & 0xFFFF; }
  static constexpr std::uint64_t called_of(std::uint64_t state) noexcept { return state >> 48; }
  static constexpr std::uint64_t with_next_epoch(std::uint64_t state) noexcept {
    return (state & ~std::uint64_t{0xFFFFFFFF}) | static_cast<std::uint32_t>(epoch_of(state) + 1);
  }
  static constexpr std::uint64_t with_all_called(std::uint64_t state) noexcept {
    return (state & (kOneCall - 1)) | waiters_of(state) * kOneCall;
  }

  Wake sleep(Ticket ticket, Clock::time_point deadline) noexcept {
    while (epoch_of(state_.load()) == ticket) {
      switch (state_.sleep_while(ticket, deadline)) {
        case Sleep::woken:
          return Wake::notified;
        case Sleep::changed:
          break;
        case Sleep::timed_out:
          return Wake::timed_out;
        case Sleep::interrupted:
          return Wake::interrupted;
      }
    }
    return Wake::notified;
  }

  void leave() noexcept {
    std::uint64_t state = state_.load();
    while (!state_.compare_exchange(state, state - kOneWaiter - (called_of(state) > 0 ? kOneCall : 0))) {
    }
    // A notifier that still counted this waiter as called did not call another: this waiter's next look at
    // the condition has to see that notifier's change.
    state_.fence();
  }

  Word state_;
};

using EventCount = BasicEventCount<FutexWord>;

}  // namespace headrace::queues
