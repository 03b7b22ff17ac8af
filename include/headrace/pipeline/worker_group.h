// The worker threads of one operator.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headrace/pipeline/operator.h"

namespace headrace::pipeline {

/// Starts an operator's workers when a pass begins and parks them between passes, so that every pass runs on
/// the same threads and fills the same cells. The last worker to finish closes the operator's output.
///
/// `begin`, `wait_until_idle`, destruction: one thread at a time. `resize`: from any thread.
class WorkerGroup {
 public:
  explicit WorkerGroup(Operator& op);
  /// Joins the threads. The pass must have been stopped or have ended.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Throws Error if the system cannot create a thread.
  void begin(StopState& stop);
  /// Additional workers start at once; surplus workers leave after their current item. UsageError outside
  /// 1..kMaxWorkers.
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
  void serve(std::size_t index, std::unique_lock<std::mutex>& lock, WaitHooks& hooks);

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
