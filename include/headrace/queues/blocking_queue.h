// A blocking queue behind a lock, bounded or not: the base of Python's headrace.Queue.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "headrace/metrics/clock.h"
#include "headrace/queues/eventcount.h"
#include "headrace/queues/instrumented.h"
#include "headrace/queues/queue_status.h"

namespace headrace::queues {

/// First in, first out, any number of producers and consumers. Items move; nothing is copied or allocated per
/// item beyond the deque's blocks. Thread-safe.
///
/// The lock makes it slower than a BoundedQueue of a lock-free kind, and lets its owner look at all items
/// (`for_each`) and judge each as it is taken (`try_get_judged`), which Python's collector and end marks
/// need.
///
/// `Recorder` receives every change under the lock and every wait outside it (see instrumented.h); with
/// NotRecorded it is a plain queue.
template <class T, class Recorder = NotRecorded>
class BlockingQueue {
 public:
  using Clock = EventCount::Clock;

  /// capacity <= 0: unbounded.
  explicit BlockingQueue(std::int64_t capacity, Recorder recorder = Recorder())
      : capacity_(capacity), recorder_(std::move(recorder)) {}

  /// Moves from `item` only when it is put. Never waits.
  template <class Context>
  QueueStatus try_put(T& item, std::int64_t waited_ns, const Context& context) {
    {
      const std::scoped_lock lock(mutex_);
      if (closed_) return QueueStatus::closed;
      if (capacity_ > 0 && static_cast<std::int64_t>(items_.size()) >= capacity_) return QueueStatus::not_now;
      items_.push_back(std::move(item));
      recorder_.put(static_cast<std::int64_t>(items_.size()), waited_ns, context);
    }
    not_empty_.notify_one();
    return QueueStatus::done;
  }

  template <class Context>
  QueueStatus try_get(std::optional<T>& item, std::int64_t waited_ns, const Context& context) {
    return try_get_judged(item, waited_ns, [&](const T&) -> const Context& { return context; });
  }

  /// `context_of(item)` tells the recorder what was taken (an end mark does not count as an item).
  template <class ContextOf>
  QueueStatus try_get_judged(std::optional<T>& item, std::int64_t waited_ns, ContextOf&& context_of) {
    {
      const std::scoped_lock lock(mutex_);
      if (items_.empty()) return closed_ ? QueueStatus::closed : QueueStatus::not_now;
      item.emplace(std::move(items_.front()));
      items_.pop_front();
      recorder_.get(static_cast<std::int64_t>(items_.size()), waited_ns, context_of(*item));
    }
    not_full_.notify_one();
    return QueueStatus::done;
  }

  /// Waits until there may be room, the deadline, a signal or the queue's end. Call try_put again afterwards.
  QueueStatus wait_not_full(Clock::time_point deadline) {
    return wait(not_full_, deadline, [&] {
      const std::scoped_lock lock(mutex_);
      return closed_ || capacity_ <= 0 || static_cast<std::int64_t>(items_.size()) < capacity_;
    });
  }
  QueueStatus wait_not_empty(Clock::time_point deadline) {
    return wait(not_empty_, deadline, [&] {
      const std::scoped_lock lock(mutex_);
      return closed_ || !items_.empty();
    });
  }

  /// No more puts; what is inside can still be taken (`drop` = false) or is handed back to the caller.
  std::deque<T> close(bool drop) {
    std::deque<T> dropped;
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
      if (drop) {
        dropped.swap(items_);
        recorder_.emptied();
      }
    }
    not_empty_.notify_all();
    not_full_.notify_all();
    return dropped;
  }

  std::int64_t size() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::int64_t>(items_.size());
  }
  /// Calls `visit` with each item, the lock held.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::scoped_lock lock(mutex_);
    for (const T& item : items_) visit(item);
  }
  std::int64_t capacity() const noexcept { return capacity_; }
  bool closed() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }
  Recorder& recorder() noexcept { return recorder_; }

 private:
  template <class Ready>
  QueueStatus wait(EventCount& event, Clock::time_point deadline, Ready&& ready) {
    const EventCount::Ticket ticket = event.prepare();
    if (ready()) {
      event.cancel(ticket);
      return QueueStatus::done;
    }
    switch (event.wait(ticket, deadline)) {
      case Wake::timed_out:
        return QueueStatus::timed_out;
      case Wake::interrupted:
        return QueueStatus::interrupted;
      case Wake::notified:
        break;
    }
    return QueueStatus::done;
  }

  const std::int64_t capacity_;
  mutable std::mutex mutex_;
  std::deque<T> items_;
  bool closed_ = false;
  EventCount not_empty_;
  EventCount not_full_;
  Recorder recorder_;
};

}  // namespace headrace::queues
