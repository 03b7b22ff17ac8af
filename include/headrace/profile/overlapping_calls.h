// Calls of one operator that overlap on one thread: the coroutines of an event loop.
//
//     const std::int64_t began = metrics::Clock::now_ns();
//     ... the call, with others in between ...
//     calls.done(began, false);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/probes.h"

namespace headrace::profile {

/// Each call that overlaps another one is recorded by a worker of its own, which has no thread: busy from the
/// call's beginning to its end, what it awaits included. Their CPU time is unknown. Not thread-safe.
class OverlappingCalls {
 public:
  explicit OverlappingCalls(std::shared_ptr<OperatorHandle> op) : op_(std::move(op)) {}
  ~OverlappingCalls();
  OverlappingCalls(const OverlappingCalls&) = delete;
  OverlappingCalls& operator=(const OverlappingCalls&) = delete;

  /// A call that began at `began_ns` (Clock) has ended. Never throws; with more than 64 calls at once, the
  /// others are not recorded.
  void done(std::int64_t began_ns, bool failed) noexcept;

 private:
  struct Lane {
    metrics::WorkerProbe probe;
    metrics::OperatorCell* cell = nullptr;
    std::int64_t busy_until_ns = 0;
  };

  void follow_session() noexcept;
  Lane* free_lane(std::int64_t began_ns);

  std::shared_ptr<OperatorHandle> op_;
  std::shared_ptr<Session> session_;
  int pid_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace headrace::profile
