// oneTBB's bounded queue as a kind: for pipelines that want its queue on their edges.
#pragma once

#include <oneapi/tbb/concurrent_queue.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "headrace/queues/put_gate.h"
#include "headrace/queues/queue_kind.h"

namespace headrace::queues {

/// Any number of threads on either side, first in, first out. Allocates pages of items as it goes, so its
/// capacity grows without reserved room, and a put may throw std::bad_alloc: the item is then where it was,
/// and the queue, as oneTBB's is, to be given up.
/// Slower than MpmcRing, and the more so the more threads there are (docs/queues.md has the figures).
///
/// oneTBB's own waiting is not used: it has neither deadlines nor an end.
template <class T>
class TbbQueue {
  static_assert(kMovesSafely<T>, "items of a queue must not throw when they move");
  static_assert(std::is_nothrow_move_assignable_v<T>, "oneTBB's queue assigns what it takes out");

 public:
  using value_type = T;
  static constexpr bool kAnyPutMayGo = true;

  explicit TbbQueue(std::int64_t capacity, std::int64_t max_capacity = 0)
      : room_(max_capacity == 0 ? kMostItems : checked_room(capacity, max_capacity)) {
    set_capacity(capacity);
  }

  Attempt try_push(T& item) {
    const std::optional<std::uint64_t> number = gate_.enter();
    if (!number) return {QueueStatus::closed};
    try {
      // Constructs in place, and only when there is room: until then `item` is not moved from.
      if (queue_.try_emplace(std::move(item))) return {QueueStatus::done, *number};
    } catch (...) {
      gate_.back_out();
      throw;
    }
    gate_.back_out();
    return {};
  }

  Attempt try_pop(std::optional<T>& out) {
    if (queue_.try_pop(out)) return {QueueStatus::done, gets_.fetch_add(1, std::memory_order_seq_cst)};
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
  const std::int64_t room_;
  std::atomic<std::int64_t> capacity_{0};
  PutGate gate_;
  alignas(64) std::atomic<std::uint64_t> gets_{0};
  // Optional: oneTBB assigns what it takes out, which needs an object to assign to.
  tbb::concurrent_bounded_queue<std::optional<T>> queue_;
};

}  // namespace headrace::queues
