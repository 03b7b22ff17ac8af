// The recording of one worker's loop.
#pragma once

#include <cstdint>

#include "headrace/profile/probes.h"
#include "headrace/profile/thread_context.h"

namespace headrace::pipeline {

/// While it lives, all time of the calling thread between its waits at queues is the operator's; the queues'
/// recorders count the items. One per worker and pass. Never throws.
class RecordedLoop {
 public:
  /// `body`: the operator whose items fail, where that is another one.
  explicit RecordedLoop(profile::OperatorHandle& op, profile::OperatorHandle* body = nullptr) noexcept
      : operator_(op), body_(body) {
    rest();
  }
  ~RecordedLoop();
  RecordedLoop(const RecordedLoop&) = delete;
  RecordedLoop& operator=(const RecordedLoop&) = delete;

  /// Before each item. `label`: its number. Follows a session that changed meanwhile.
  void item(std::uint64_t label) noexcept {
    profile::ThreadContext& context = profile::ThreadContext::local();
    if (context.probe.loop_cell() == nullptr) rest();
    context.probe.label_loop_item(static_cast<std::int64_t>(label));
  }
  /// The item's body threw, and it is left out.
  void failed() noexcept;

 private:
  void rest() noexcept;

  profile::OperatorHandle& operator_;
  profile::OperatorHandle* body_;
};

}  // namespace headrace::pipeline
