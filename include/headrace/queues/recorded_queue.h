// The bounded queue that a C++ pipeline puts between its threads: blocking, and recorded into the current
// run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/queues/blocking_queue.h"

namespace headrace::queues {

/// Occupancy, puts, gets and waits of the queue, and the blocked-in and blocked-out time of the threads that
/// use it, go into the current run under the queue's name. Thread-safe.
///
///     RecordedQueue<Image> decoded("decoded", 16);
///     decoded.put(decode(path));                  // waits for room
///     while (auto image = decoded.get()) use(*image);
///
/// A thread that takes from one queue and puts to another is an operator between them; its time in between is
/// its service time. Give the loop a name (`loop_name`) where it runs no annotated operator.
template <class T>
class RecordedQueue {
 public:
  using Clock = EventCount::Clock;

  /// capacity <= 0: unbounded.
  RecordedQueue(const std::string& name, std::int64_t capacity)
      : handle_(std::make_shared<profile::QueueHandle>(name, capacity)),
        queue_(capacity, Instrumented(handle_)) {}

  /// Waits for room until `deadline`. False when it passed or the queue is closed; the item is then lost.
  bool put(T item, const char* loop_name = "thread", Clock::time_point deadline = Clock::time_point::max()) {
    const Transfer about{true, loop_name};
    QueueStatus status = queue_.try_put(item, 0, about);
    if (status == QueueStatus::not_now) {
      status = wait(metrics::WorkerState::blocked_out, deadline,
                    [&](std::int64_t waited_ns) { return queue_.try_put(item, waited_ns, about); });
    }
    return status == QueueStatus::done;
  }

  /// Waits for an item until `deadline`. Nothing when it passed, or when the queue is closed and empty.
  std::optional<T> get(const char* loop_name = "thread",
                       Clock::time_point deadline = Clock::time_point::max()) {
    const Transfer about{true, loop_name};
    std::optional<T> item;
    if (queue_.try_get(item, 0, about) == QueueStatus::not_now) {
      wait(metrics::WorkerState::blocked_in, deadline,
           [&](std::int64_t waited_ns) { return queue_.try_get(item, waited_ns, about); });
    }
    return item;
  }

  /// No more puts; what is inside can still be taken.
  void close() { queue_.close(false); }
  std::int64_t size() const { return queue_.size(); }
  std::int64_t capacity() const noexcept { return queue_.capacity(); }

 private:
  template <class Attempt>
  QueueStatus wait(metrics::WorkerState state, Clock::time_point deadline, Attempt&& attempt) {
    const std::int64_t began = metrics::Clock::now_ns();
    QueueStatus status = QueueStatus::not_now;
    QueueStatus woken = QueueStatus::done;
    while (status == QueueStatus::not_now && woken != QueueStatus::timed_out) {
      handle_->waiting(state);
      woken = state == metrics::WorkerState::blocked_out ? queue_.wait_not_full(deadline)
                                                         : queue_.wait_not_empty(deadline);
      handle_->waited();
      status = attempt(metrics::Clock::now_ns() - began);
    }
    return status;
  }

  std::shared_ptr<profile::QueueHandle> handle_;
  BlockingQueue<T, Instrumented> queue_;
};

}  // namespace headrace::queues
