// The recording of bodies that only wait for another process.
#pragma once

#include <cstdint>

#include "headrace/metrics/operator_cell.h"
#include "headrace/pipeline/stop_state.h"
#include "headrace/profile/probes.h"

namespace headrace::pipeline {

/// Wraps each body of a thread whose work is done elsewhere. The body finds it as `current()` and
/// reports when the work was done; the rest of its time is the loop's (RecordedLoop), which for these
/// is the hand-off. Until that report, the time counts as the operator's.
///
/// One per worker and pass, on the worker's own thread; never throws. `told`, `began_ns`, `ended_ns`: of the
/// last item.
class RemoteService {
 public:
  RemoteService(profile::OperatorHandle& op, const StopState& stop) noexcept;
  ~RemoteService();
  RemoteService(const RemoteService&) = delete;
  RemoteService& operator=(const RemoteService&) = delete;

  /// The calling thread's; null outside a worker of such an operator.
  static RemoteService* current() noexcept { return current_; }

  /// Around the body. `label`: the item's number.
  void begin(std::int64_t label) noexcept;
  void end() noexcept;

  /// By the body: when the work was done, by CLOCK_MONOTONIC in ns, and the CPU time that it took (below 0:
  /// unknown).
  void tell(std::int64_t began_ns, std::int64_t ended_ns, std::int64_t cpu_ns) noexcept;
  /// By the body: the other process is being started, which is not service time; it is ready.
  void starting() noexcept;
  void started() noexcept;
  /// The pass is over: the body need not wait for its answer.
  bool stopped() const noexcept { return stop_.stopped(); }

  bool told() const noexcept { return told_; }
  std::int64_t began_ns() const noexcept { return began_ns_; }
  std::int64_t ended_ns() const noexcept { return ended_ns_; }

 private:
  static thread_local RemoteService* current_;

  profile::OperatorHandle& operator_;
  const StopState& stop_;
  RemoteService* outer_;
  metrics::OperatorCell* cell_ = nullptr;  ///< of the body that runs; null if nothing is recorded
  std::uint64_t session_uid_ = 0;
  std::int64_t label_ = -1;
  std::int64_t entered_ns_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t ended_ns_ = 0;
  std::int64_t cpu_ns_ = -1;
  bool told_ = false;
};

}  // namespace headrace::pipeline
