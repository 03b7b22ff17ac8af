// Puts items back into their order: for operators whose workers finish in any order.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/queues/put_gate.h"
#include "headrace/queues/queue_kind.h"

namespace headrace::queues {

/// An item and its place in the order, from 0.
template <class T>
struct Numbered {
  std::uint64_t number = 0;
  T item;
};

/// Items leave by number, not by arrival. Any number of threads on either side (with several consumers
/// each number still leaves once; the consumers have to settle the order among themselves).
///
/// The capacity is a window: number n has room once n - capacity left. So the worker that holds the awaited
/// number always has room, and no order of arrival can stop the queue. How to read its level: low while
/// producers wait means one slow item holds everything up (a larger capacity helps); high means its consumer
/// is slow.
///
/// Every number must be put once. A number that was put before is a UsageError. Where an operator drops
/// items, it puts an empty one (T = std::optional<...>). After `close` numbers that never came are passed
/// over.
///
/// The slots are those of MpmcRing, with tickets from the caller: `turn` says what slot n mod N holds.
template <class T>
class ReorderBuffer {
  static_assert(kMovesSafely<T>, "items of a queue must not throw when they move");

 public:
  using value_type = Numbered<T>;
  /// A get makes room for one certain number: every waiting put has to look whether it is its own.
  static constexpr bool kAnyPutMayGo = false;

  explicit ReorderBuffer(std::int64_t capacity, std::int64_t max_capacity = 0)
      : room_(checked_room(capacity, max_capacity)),
        mask_(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(room_, 2))) - 1),
        slots_(std::make_unique<Slot[]>(mask_ + 1)),
        limit_(capacity) {
    for (std::uint64_t i = 0; i <= mask_; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }
  /// Destroys what is inside. No other thread may be in a call.
  ~ReorderBuffer() {
    const std::uint64_t begin = head_.load(std::memory_order_relaxed);
    for (std::uint64_t at = begin; at != begin + mask_ + 1; ++at) {
      Slot& slot = slots_[at & mask_];
      if (slot.turn.load(std::memory_order_relaxed) == at + 1) std::destroy_at(slot.item());
    }
  }
  ReorderBuffer(const ReorderBuffer&) = delete;
  ReorderBuffer& operator=(const ReorderBuffer&) = delete;

  /// Throws UsageError if the number was put before, or was below 0 before it became unsigned.
  Attempt try_push(Numbered<T>& numbered) {
    const std::optional<std::uint64_t> entry = gate_.enter();
    if (!entry) return {QueueStatus::closed};
    const std::uint64_t number = numbered.number;
    const auto ahead = static_cast<std::int64_t>(number - head_.load(std::memory_order_relaxed));
    if (ahead >= limit_.load(std::memory_order_relaxed)) return backed_out();
    if (ahead < 0) refuse_twice(number);
    Slot& slot = slots_[number & mask_];
    std::uint64_t turn = number;
    // Claimed before it is filled, so that a number that comes twice is seen even at the same moment.
    // Acquire: the get that freed the slot has moved its item out.
    if (!slot.turn.compare_exchange_strong(turn, number | kFilling, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
      if ((turn & kFilling) == 0 && static_cast<std::int64_t>(turn - number) < 0)
        return backed_out();  // still being emptied
      refuse_twice(number);
    }
    std::construct_at(slot.item(), std::move(numbered.item));
    slot.turn.store(number + 1, std::memory_order_release);  // hands the item to the get of this number
    filled_.fetch_add(1, std::memory_order_seq_cst);
    return {QueueStatus::done, *entry};
  }

  Attempt try_pop(std::optional<Numbered<T>>& out) noexcept {
    std::uint64_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      // Acquire: the put has moved its item in.
      if (slot.turn.load(std::memory_order_acquire) == at + 1) {
        if (!head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        out.emplace(Numbered<T>{at, std::move(*slot.item())});
        std::destroy_at(slot.item());
        slot.turn.store(at + mask_ + 1, std::memory_order_release);  // hands the slot to the next lap's put
        return {QueueStatus::done, gets_.fetch_add(1, std::memory_order_seq_cst)};
      }
      const std::uint64_t now = head_.load(std::memory_order_relaxed);
      if (now != at) {
        at = now;
        continue;
      }
      if (!gate_.closed()) return {};
      const std::uint64_t filled = filled_.load(std::memory_order_seq_cst);
      if (gate_.entered() != filled) return {};  // a put is on its way
      if (gets_.load(std::memory_order_seq_cst) == filled) return {QueueStatus::closed};
      // Something is inside and nothing more will come: number `at` is missing for good, unless it came just
      // now.
      if (slot.turn.load(std::memory_order_acquire) == at + 1) continue;
      head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed);
    }
  }

  void close() noexcept { gate_.close(); }
  bool closed() const noexcept { return gate_.closed(); }

  void set_capacity(std::int64_t capacity) {
    limit_.store(checked_capacity(capacity, room_), std::memory_order_relaxed);
  }
  std::int64_t capacity() const noexcept { return limit_.load(std::memory_order_relaxed); }
  std::int64_t max_capacity() const noexcept { return room_; }

  std::uint64_t puts() const noexcept { return gate_.entered(); }
  std::uint64_t gets() const noexcept { return gets_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<std::uint64_t> turn;
    alignas(T) std::byte storage[sizeof(T)];
    T* item() noexcept { return std::launder(reinterpret_cast<T*>(storage)); }
  };
  static constexpr std::uint64_t kFilling = std::uint64_t{1} << 63;

  Attempt backed_out() noexcept {
    gate_.back_out();
    return {};
  }
  [[noreturn]] void refuse_twice(std::uint64_t number) {
    gate_.back_out();
    throw UsageError("number " + std::to_string(static_cast<std::int64_t>(number)) +
                     " was put into a reorder buffer twice, or is below 0");
  }

  const std::int64_t room_;
  const std::uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<std::int64_t> limit_;
  PutGate gate_;
  alignas(64) std::atomic<std::uint64_t> filled_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> gets_{0};
};

}  // namespace headrace::queues
