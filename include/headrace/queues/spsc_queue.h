// One producer, one consumer: Boost.Lockfree's ring, with counters, a capacity that can change, and an end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "headrace/queues/process_fence.h"
#include "headrace/queues/queue_kind.h"

namespace headrace::queues {

/// boost::lockfree::spsc_queue of numbers, behind a wall: a program that includes this needs no Boost.
class SpscNumbers {
 public:
  explicit SpscNumbers(std::size_t room);
  ~SpscNumbers();
  /// There is room for it.
  void push(std::uint32_t number) noexcept;
  /// False when it is empty.
  bool pop(std::uint32_t& number) noexcept;

 private:
  struct Ring;
  const std::unique_ptr<Ring> ring_;
};

/// The fastest kind, for an edge between two single threads. **One** thread puts and **one** gets (which
/// thread it is may change if the two hand over with a lock or a join); `close`, `set_capacity` and the
/// counts may be called from anywhere.
template <class T>
class SpscQueue {
  static_assert(kMovesSafely<T>, "items of a queue must not throw when they move");

 public:
  using value_type = T;
  static constexpr bool kAnyPutMayGo = true;

  explicit SpscQueue(std::int64_t capacity, std::int64_t max_capacity = 0)
      : room_(checked_room(capacity, max_capacity)),
        capacity_(capacity),
        slots_(std::make_unique<Slot[]>(static_cast<std::size_t>(room_))),
        filled_(static_cast<std::size_t>(room_)) {}

  /// Destroys what is inside. No other thread may be in a call.
  ~SpscQueue() {
    std::optional<T> left;
    while (take(left)) {
    }
  }
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;

  Attempt try_push(T& item) noexcept {
    const std::uint64_t number = puts_.load(std::memory_order_relaxed);
    // Counted first: a consumer that sees the queue closed waits for what is counted and not yet inside.
    puts_.store(number + 1, std::memory_order_relaxed);
    ProcessFence::light();  // with close(): either this put sees it, or the consumer sees this put counted
    if (number >= room_until_.load(std::memory_order_relaxed) && !has_room(number)) {
      puts_.store(number, std::memory_order_relaxed);
      const bool closed = room_until_.load(std::memory_order_relaxed) == kClosed;
      return {closed ? QueueStatus::closed : QueueStatus::not_now};
    }
    std::construct_at(slots_[next_].item(), std::move(item));
    filled_.push(next_);
    next_ = next_ + 1 == static_cast<std::uint32_t>(room_) ? 0 : next_ + 1;
    return {QueueStatus::done, number};
  }

  Attempt try_pop(std::optional<T>& out) noexcept {
    const std::uint64_t number = gets_.load(std::memory_order_relaxed);
    if (take(out)) {
      gets_.store(number + 1, std::memory_order_release);  // hands the room to the producer
      return {QueueStatus::done, number};
    }
    if (closed() && puts_.load(std::memory_order_relaxed) == number) return {QueueStatus::closed};
    return {};
  }

  void close() noexcept {
    room_until_.store(kClosed, std::memory_order_relaxed);
    ProcessFence::heavy();
    closed_.store(true, std::memory_order_release);  // who sees it sees every put that went through before
  }
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  void set_capacity(std::int64_t capacity) {
    // Before the word below, and read again after it is written: a put that works with the old one looks
    // again.
    capacity_.store(checked_capacity(capacity, room_), std::memory_order_seq_cst);
    std::uint64_t until = room_until_.load(std::memory_order_relaxed);
    while (until != kClosed &&
           !room_until_.compare_exchange_weak(until, kLookAgain, std::memory_order_seq_cst)) {
    }
  }
  std::int64_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  std::int64_t max_capacity() const noexcept { return room_; }

  std::uint64_t puts() const noexcept { return puts_.load(std::memory_order_relaxed); }
  std::uint64_t gets() const noexcept { return gets_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    T* item() noexcept { return std::launder(reinterpret_cast<T*>(storage)); }
    alignas(T) std::byte storage[sizeof(T)];
  };

  bool take(std::optional<T>& out) noexcept {
    std::uint32_t slot = 0;
    if (!filled_.pop(slot)) return false;
    T* const item = slots_[slot].item();
    out.emplace(std::move(*item));
    std::destroy_at(item);
    return true;
  }

  /// Finds out anew up to which number there is room. False: not for this one, or the queue is closed.
  bool has_room(std::uint64_t number) noexcept {
    std::uint64_t until = room_until_.load(std::memory_order_relaxed);
    while (until != kClosed) {
      const std::int64_t capacity = capacity_.load(std::memory_order_seq_cst);
      // Acquire: the consumer has moved those items out.
      const std::uint64_t room = gets_.load(std::memory_order_acquire) + static_cast<std::uint64_t>(capacity);
      if (!room_until_.compare_exchange_weak(until, room, std::memory_order_seq_cst)) continue;
      if (capacity_.load(std::memory_order_seq_cst) == capacity) return number < room;
      until = room_until_.load(std::memory_order_relaxed);
    }
    return false;
  }

  // Read by both, written hardly ever.
  const std::int64_t room_;
  std::atomic<std::int64_t> capacity_;
  /// Puts below this number have room: all that a put looks at. Two values say what it is to find out first
  /// (with the lower one even put 0 does; with the other put 0 need not).
  static constexpr std::uint64_t kClosed = 0;
  static constexpr std::uint64_t kLookAgain = 1;
  std::atomic<std::uint64_t> room_until_{kLookAgain};
  std::atomic<bool> closed_{false};
  // The producer's line and the consumer's line.
  alignas(64) std::atomic<std::uint64_t> puts_{0};
  std::uint32_t next_ = 0;  ///< the slot of the next put
  alignas(64) std::atomic<std::uint64_t> gets_{0};
  alignas(
      64) const std::unique_ptr<Slot[]> slots_;  ///< as many as there is room: a put never meets a full one
  SpscNumbers filled_;                           ///< slots with an item, in order
};

}  // namespace headrace::queues
