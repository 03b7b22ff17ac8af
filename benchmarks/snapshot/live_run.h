// A run of 8 operators on 64 workers with a queue between each two operators, in shared memory as in a real
// job.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "headrace/profile/session.h"

namespace headrace::bench {

inline constexpr int kOperators = 8;
inline constexpr int kWorkers = 64;

class LiveRun {
 public:
  /// `busy`: each worker runs all its operators about 200 times a second until the end.
  explicit LiveRun(bool busy);
  ~LiveRun();
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  /// The live segment's file; empty where shared memory cannot be had.
  const std::string& path() const { return session_->live_path(); }
  /// Operator calls that the workers have finished.
  std::uint64_t calls() const { return calls_.load(); }

 private:
  void work(bool busy);

  std::shared_ptr<profile::Session> session_;
  std::vector<int> operators_;
  std::atomic<int> ready_{0};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace headrace::bench
