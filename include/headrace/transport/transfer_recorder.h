// The copy to a device as a recorded operator: one call per batch, on the thread that copies.
#pragma once

#include <deque>
#include <memory>
#include <span>

#include "headrace/profile/probes.h"
#include "headrace/transport/device.h"

namespace headrace::transport {

/// A block of `device`, as Device::acquire; while it waits, the calling thread is recorded as blocked at its
/// output: what holds the buffers is downstream.
Acquired acquire_recorded(Device& device, std::size_t bytes,
                          BlockRing::Clock::time_point deadline = BlockRing::Clock::time_point::max());

/// Reports copies to an operator. Times of asynchronous copies are reported once they are known,
/// so one object is kept for the life of the operator's thread. Not thread-safe.
///
///     TransferRecorder recorder(handle);
///     handle->begin();
///     Acquired acquired = acquire_recorded(device, bytes_needed(arrays));
///     const Copied copied = device.copy(arrays, acquired.block);
///     handle->end(false);
///     recorder.copied(copied, acquired.waited_ns);
class TransferRecorder {
 public:
  explicit TransferRecorder(std::shared_ptr<profile::OperatorHandle> op) : op_(std::move(op)) {}

  /// One batch. Checks earlier ones in flight, never waits for one.
  void copied(const Copied& copied, std::int64_t buffer_wait_ns) noexcept;
  /// Reports the times of the copies that have ended since.
  void settle() noexcept;
  /// Waits for the copies in flight and reports their times; at the end of an epoch.
  void finish() noexcept;

 private:
  struct UnderWay {
    Completion completion;
    std::int64_t bytes = 0;
  };
  std::shared_ptr<profile::OperatorHandle> op_;
  std::deque<UnderWay> under_way_;  ///< in the order in which they began
};

}  // namespace headrace::transport
