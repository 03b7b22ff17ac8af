// The recording of one worker's loop.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/pipeline/stop_state.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/thread_context.h"

namespace headrace::pipeline {

/// While it lives, all time of the calling thread between its waits at queues is the operator's; the queues'
/// recorders count the items. One per worker and pass. Never throws.
class RecordedLoop {
 public:
  /// `body`: the operator whose items fail, where that is another one; it must outlive the loop.
  RecordedLoop(std::shared_ptr<profile::OperatorHandle> op, const StopState& stop,
               profile::OperatorHandle* body = nullptr) noexcept;
  ~RecordedLoop();
  RecordedLoop(const RecordedLoop&) = delete;
  RecordedLoop& operator=(const RecordedLoop&) = delete;

  /// The calling worker's, for bodies that report more than their time; null outside a pipeline.
  static RecordedLoop* here() noexcept { return here_; }

  /// Before each item. `label`: its number. Follows a session that changed meanwhile.
  void item(std::uint64_t label) noexcept {
    profile::ThreadContext& context = profile::ThreadContext::local();
    if (context.probe.loop_cell() == nullptr) rest();
    context.probe.label_loop_item(static_cast<std::int64_t>(label));
  }
  /// The item's body threw, and it is left out.
  void failed() noexcept;
  /// The pass ends: a body that waits for something should give up.
  bool stopped() const noexcept { return stop_.stopped(); }
  const std::shared_ptr<profile::OperatorHandle>& op() const noexcept { return operator_; }

 private:
  void rest() noexcept;

  static thread_local RecordedLoop* here_;

  std::shared_ptr<profile::OperatorHandle> operator_;
  const StopState& stop_;
  profile::OperatorHandle* body_;
};

}  // namespace headrace::pipeline
