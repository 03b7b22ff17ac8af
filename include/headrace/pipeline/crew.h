// The threads of one operator.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headrace/pipeline/operator.h"

namespace headrace::pipeline {

/// Starts an operator's workers when a pass begins and lets them rest between passes, so that every pass
/// runs on the same threads and fills the same cells. When the last one has nothing more to do, the
/// operator's output is closed.
///
/// `begin`, `wait_until_idle`, destruction: one thread at a time. `resize`: from any thread.
class Crew {
 public:
  explicit Crew(Operator& op);
  /// Ends the threads. The pass must have been stopped or be at its end.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Throws Error where the system gives no thread.
  void begin(StopState& stop);
  /// More workers start at once; fewer: the last ones leave after their item. UsageError outside
  /// 1..kMostWorkers.
  void resize(int workers);
  void wait_until_idle();
  int size() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  Operator& op() noexcept { return operator_; }

 private:
  struct Member {
    std::thread thread;
    bool working = false;
  };

  void start_missing();
  void live(std::size_t index);
  void serve(std::size_t index, std::unique_lock<std::mutex>& lock, Environment& environment);

  Operator& operator_;
  std::atomic<int> wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Member>> members_;
  StopState* stop_ = nullptr;  ///< of the pass that runs
  bool input_ended_ = false;
  int working_ = 0;
  bool dismissed_ = false;
};

}  // namespace headrace::pipeline
