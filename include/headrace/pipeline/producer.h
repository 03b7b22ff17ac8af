// An operator with a queue of T behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "headrace/metrics/clock.h"
#include "headrace/pipeline/operator.h"

namespace headrace::pipeline {

/// An operator that feeds the next one, or the sink.
template <class T>
class Producer : public Operator {
 public:
  using value_type = T;
  using Operator::Operator;

  void open(std::uint64_t) override {
    const OperatorSettings& its = settings();
    auto edge = make_edge<T>({.name = its.name,
                              .capacity = capacity(),
                              .loader = loader(),
                              .choice = its.queue,
                              .ordered = its.ordered && !its.serial,
                              .numbers = !its.ordered && !its.serial});
    const std::scoped_lock lock(mutex_);
    output_ = std::move(edge);
  }
  void close_output() noexcept override {
    const std::scoped_lock lock(mutex_);
    if (output_ != nullptr) output_->close();
  }
  void clear() noexcept override {
    std::unique_ptr<Edge<T>> gone;
    const std::scoped_lock lock(mutex_);
    gone.swap(output_);
  }
  void set_capacity(std::int64_t capacity) override {
    queues::checked_capacity(capacity, queues::kMaxItems);
    const std::scoped_lock lock(mutex_);
    if (output_ != nullptr) output_->set_capacity(capacity);
    remember_capacity(capacity);
  }
  /// During a pass: everything was taken, and nothing more will come.
  bool drained() const noexcept {
    const std::scoped_lock lock(mutex_);
    return output_ != nullptr && output_->drained();
  }

  /// The queue behind it, during a pass.
  Edge<T>& output() noexcept { return *output_; }

 private:
  mutable std::mutex mutex_;  // the pointer, against close_output and set_capacity from other threads
  std::unique_ptr<Edge<T>> output_;
};

/// Waits for a token; `hooks` surround the wait. False: the input has ended.
template <class T>
bool take(Edge<T>& from, Token<T>& token, WaitHooks& hooks) {
  queues::QueueStatus status = from.try_get(token);
  if (status == queues::QueueStatus::not_now) {
    hooks.before_wait();
    status = from.get(token, queues::kNever);
    hooks.after_wait();
  }
  return status == queues::QueueStatus::done;
}

/// Waits for room. False: the queue was closed; the token is still the caller's.
template <class T>
bool give(Edge<T>& to, Token<T>& token, WaitHooks& hooks) {
  queues::QueueStatus status = to.try_put(token);
  if (status == queues::QueueStatus::not_now) {
    hooks.before_wait();
    status = to.put(token);
    hooks.after_wait();
  }
  return status == queues::QueueStatus::done;
}

}  // namespace headrace::pipeline
