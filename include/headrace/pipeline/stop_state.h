// How one pass over a pipeline ends early: the first error, or a stop request.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>

namespace headrace::pipeline {

/// Shared by all threads of one pass. Thread-safe.
class StopState {
 public:
  /// `wake`: called once, by the first stop, to wake all threads that wait at a queue.
  explicit StopState(std::function<void()> wake) : wake_(std::move(wake)) {}

  bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }
  void stop() noexcept;
  /// Stops with an error; only the first one is kept.
  void fail(std::exception_ptr error) noexcept;
  std::exception_ptr error() const noexcept;

 private:
  std::atomic<bool> stopped_{false};
  mutable std::mutex mutex_;
  std::exception_ptr error_;
  std::function<void()> wake_;
};

}  // namespace headrace::pipeline
