// oneTBB's bounded queue as a kind: for pipelines that want its queue on their edges.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "headrace/queues/put_gate.h"
#include "headrace/queues/queue_kind.h"

namespace headrace::queues {

/// tbb::concurrent_bounded_queue of pointers, behind a wall: a program that includes this needs no oneTBB.
class TbbPointers {
 public:
  TbbPointers();
  ~TbbPointers();
  bool full() const noexcept;
  /// False when it is full.
  bool try_push(void* item);
  /// nullptr when it is empty.
  void* try_pop() noexcept;
  void set_capacity(std::int64_t capacity);

 private:
  struct Queue;
  const std::unique_ptr<Queue> queue_;
};

/// Any number of threads on either side, first in, first out. Allocates each item, and a put may throw
/// std::bad_alloc: the item is then where it was, and the queue, as oneTBB's is, to be given up.
/// Slower than MpmcRing, and the more so the more threads there are (docs/developers/benchmarks_runtime.md has the
/// figures).
///
/// oneTBB's own waiting is not used: it has neither deadlines nor an end.
template <class T>
class TbbQueue {
  static_assert(kMovesSafely<T>, "items of a queue must not throw when they move");
  static_assert(std::is_nothrow_move_assignable_v<T>, "an item that finds no room is moved back");

 public:
  using value_type = T;
  static constexpr bool kAnyPutMayGo = true;

  explicit TbbQueue(std::int64_t capacity, std::int64_t max_capacity = 0)
      : room_(checked_room(capacity, max_capacity)) {
    set_capacity(capacity);
  }
  /// Destroys what is inside. No other thread may be in a call.
  ~TbbQueue() {
    std::optional<T> left;
    while (take(left)) {
    }
  }
  TbbQueue(const TbbQueue&) = delete;
  TbbQueue& operator=(const TbbQueue&) = delete;

  Attempt try_push(T& item) {
    const std::optional<std::uint64_t> number = gate_.enter();
    if (!number) return {QueueStatus::closed};
    std::unique_ptr<T> boxed;
    try {
      if (!queue_.full()) boxed = std::make_unique<T>(std::move(item));
      if (boxed && queue_.try_push(boxed.get())) {
        boxed.release();
        return {QueueStatus::done, *number};
      }
    } catch (...) {
      refuse(item, boxed);
      throw;
    }
    refuse(item, boxed);
    return {};
  }

  Attempt try_pop(std::optional<T>& out) {
    if (take(out)) return {QueueStatus::done, gets_.fetch_add(1, std::memory_order_seq_cst)};
    // The flag first; then nobody enters for good any more, and who did is counted.
    if (gate_.closed() && gate_.entered() == gets_.load(std::memory_order_seq_cst))
      return {QueueStatus::closed};
    return {};
  }

  void close() noexcept { gate_.close(); }
  bool closed() const noexcept { return gate_.closed(); }

  /// oneTBB keeps its capacity in a plain word, which a put at the same time reads old or new.
  void set_capacity(std::int64_t capacity) {
    queue_.set_capacity(checked_capacity(capacity, room_));
    capacity_.store(capacity, std::memory_order_relaxed);
  }
  std::int64_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  std::int64_t max_capacity() const noexcept { return room_; }

  std::uint64_t puts() const noexcept { return gate_.entered(); }
  std::uint64_t gets() const noexcept { return gets_.load(std::memory_order_relaxed); }

 private:
  void refuse(T& item, std::unique_ptr<T>& boxed) noexcept {
    if (boxed) item = std::move(*boxed);
    gate_.back_out();
  }
  bool take(std::optional<T>& out) noexcept {
    const std::unique_ptr<T> boxed(static_cast<T*>(queue_.try_pop()));
    if (boxed) out.emplace(std::move(*boxed));
    return boxed != nullptr;
  }

  const std::int64_t room_;
  std::atomic<std::int64_t> capacity_{0};
  PutGate gate_;
  alignas(64) std::atomic<std::uint64_t> gets_{0};
  TbbPointers queue_;
};

}  // namespace headrace::queues
