#include "headrace/pipeline/copy_to_device.h"

#include <chrono>

#include "headrace/profile/errors.h"

namespace headrace::pipeline {

transport::Acquired acquire_block(transport::Device& device, std::size_t bytes) {
  constexpr auto kSlice = std::chrono::milliseconds(20);
  std::int64_t waited_ns = 0;
  for (;;) {
    transport::Acquired acquired =
        transport::acquire_recorded(device, bytes, transport::BlockRing::Clock::now() + kSlice);
    waited_ns += acquired.waited_ns;
    acquired.waited_ns = waited_ns;
    if (acquired.outcome == transport::AcquireOutcome::acquired) return acquired;
    const RecordedLoop* loop = RecordedLoop::here();
    if (acquired.outcome == transport::AcquireOutcome::cancelled || (loop != nullptr && loop->stopped()))
      throw DeviceError(device.name() + ": the wait for a buffer was ended");
  }
}

}  // namespace headrace::pipeline
