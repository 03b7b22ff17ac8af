// Many producers, many consumers: a ring of slots, each with a turn number.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "headrace/queues/queue_kind.h"

namespace headrace::queues {

/// First in, first out, lock-free, any number of threads on either side (after D. Vyukov's bounded queue).
///
/// A put takes the ticket `tail`, a get the ticket `head`; ticket t belongs to slot t mod N:
///
///     slot.turn == t          free for put t            (at first: t = index)
///     slot.turn == t + 1      holds the item of put t, ready for get t
///     slot.turn == t + N      taken; free for the put of the next lap
///
/// So a put and a get meet only in the slot, never in each other's index: that is what makes it several times
/// faster than queues whose ends look at each other. The tickets are the counters; counting costs nothing.
///
/// Capacity: any number up to the ring's size. Below that, producers keep beside `tail` how many items are
/// known to be taken, and look at the slots again only when that says "full".
template <class T>
class MpmcRing {
  static_assert(kMovesSafely<T>, "items of a queue must not throw when they move");

 public:
  using value_type = T;
  static constexpr bool kAnyPutMayGo = true;

  explicit MpmcRing(std::int64_t capacity, std::int64_t max_capacity = 0)
      : room_(checked_room(capacity, max_capacity)),
        // With one slot "ready" and "free for the next lap" would be the same turn.
        mask_(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(room_, 2))) - 1),
        slots_(std::make_unique<Slot[]>(mask_ + 1)),
        limit_(static_cast<std::uint64_t>(capacity)) {
    for (std::uint64_t i = 0; i <= mask_; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }
  /// Destroys what is inside. No other thread may be in a call.
  ~MpmcRing() {
    const std::uint64_t end = puts();
    for (std::uint64_t at = gets(); at != end; ++at) std::destroy_at(slots_[at & mask_].item());
  }
  MpmcRing(const MpmcRing&) = delete;
  MpmcRing& operator=(const MpmcRing&) = delete;

  Attempt try_push(T& item) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((at & kClosed) != 0) return {QueueStatus::closed};
      const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
      if (limit <= mask_ && at - taken_.load(std::memory_order_relaxed) >= limit) {
        // Full, unless the item `limit` places back was taken. Its slot tells; `head` would too, and slow
        // every get down to be asked.
        const std::uint64_t last = at - limit;
        const std::uint64_t turn = slots_[last & mask_].turn.load(std::memory_order_relaxed);
        if (distance(turn, last + mask_ + 1) < 0) return {};
        taken_.store(last + 1, std::memory_order_relaxed);
      }
      Slot& slot = slots_[at & mask_];
      // Acquire: the get that freed the slot has moved its item out.
      const std::int64_t turn = distance(slot.turn.load(std::memory_order_acquire), at);
      if (turn == 0) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          std::construct_at(slot.item(), std::move(item));
          slot.turn.store(at + 1, std::memory_order_release);  // hands the item to get `at`
          return {QueueStatus::done, at};
        }
      } else if (turn < 0) {
        return {};  // its last get is still moving the item out
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  Attempt try_pop(std::optional<T>& out) noexcept {
    std::uint64_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      // Acquire: the put has moved its item in.
      const std::int64_t turn = distance(slot.turn.load(std::memory_order_acquire), at + 1);
      if (turn == 0) {
        if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          out.emplace(std::move(*slot.item()));
          std::destroy_at(slot.item());
          slot.turn.store(at + mask_ + 1, std::memory_order_release);  // hands the slot to the next lap's put
          return {QueueStatus::done, at};
        }
      } else if (turn < 0) {
        // The flag first: who finds the ring empty in a hurry must not pull the producers' line over.
        if (!closed()) return {};
        return tail_.load(std::memory_order_relaxed) == (at | kClosed) ? Attempt{QueueStatus::closed}
                                                                       : Attempt{};
      } else {
        at = head_.load(std::memory_order_relaxed);
      }
    }
  }

  /// One bit of the ticket counter, so that every put has its ticket before it or is refused: what a closed
  /// ring will ever hold is certain.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_seq_cst);
    closed_.store(true, std::memory_order_release);  // who sees it sees the last ticket
  }
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  void set_capacity(std::int64_t capacity) {
    limit_.store(static_cast<std::uint64_t>(checked_capacity(capacity, room_)), std::memory_order_relaxed);
  }
  std::int64_t capacity() const noexcept {
    return static_cast<std::int64_t>(limit_.load(std::memory_order_relaxed));
  }
  std::int64_t max_capacity() const noexcept { return room_; }

  std::uint64_t puts() const noexcept { return tail_.load(std::memory_order_relaxed) & ~kClosed; }
  std::uint64_t gets() const noexcept { return head_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<std::uint64_t> turn;
    alignas(T) std::byte storage[sizeof(T)];
    T* item() noexcept { return std::launder(reinterpret_cast<T*>(storage)); }
  };
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  /// Below 0 if `from` is ahead: a ticket that was read long ago may be behind.
  static std::int64_t distance(std::uint64_t to, std::uint64_t from) noexcept {
    return static_cast<std::int64_t>(to - from);
  }

  // Read by everybody, written hardly ever.
  const std::int64_t room_;
  const std::uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<std::uint64_t> limit_;
  std::atomic<bool> closed_{false};
  // The producers' line and the consumers' line.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> taken_{0};  ///< at least so many; may lag
  alignas(64) std::atomic<std::uint64_t> head_{0};
};

}  // namespace headrace::queues
