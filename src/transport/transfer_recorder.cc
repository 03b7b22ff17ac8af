#include "headrace/transport/transfer_recorder.h"

#include "headrace/metrics/clock.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/thread_context.h"

namespace headrace::transport {

Acquired acquire_recorded(Device& device, std::size_t bytes, BlockRing::Clock::time_point deadline) {
  // A free block is the rule; only a wait is worth a change of state.
  Acquired acquired = device.acquire(bytes, BlockRing::Clock::time_point::min());
  if (acquired.outcome != AcquireOutcome::timed_out) return acquired;
  const std::int64_t began = metrics::Clock::now_ns();
  if (profile::ThreadContext* context = profile::ThreadContext::recording())
    context->probe.block(metrics::WorkerState::blocked_out, began);
  const auto unblock = [] {
    if (metrics::WorkerProbe* probe = profile::ThreadContext::local().open_probe())
      probe->unblock(metrics::Clock::now_ns());
  };
  try {
    acquired = device.acquire(bytes, deadline);
  } catch (...) {
    unblock();
    throw;
  }
  unblock();
  acquired.waited_ns = metrics::Clock::now_ns() - began;
  return acquired;
}

void TransferRecorder::copied(const Copied& copied, std::int64_t buffer_wait_ns) noexcept {
  metrics::TransferRecord record;
  record.copies = 1;
  record.bytes = copied.bytes;
  record.pinned_bytes = copied.pinned_bytes;
  record.pageable_bytes = copied.pageable_bytes;
  record.buffer_wait_ns = buffer_wait_ns;
  op_->transferred(record);
  try {
    under_way_.push_back({copied.completion, copied.bytes});
  } catch (...) {
    // No memory: the bytes are told, this copy's time is not.
  }
  settle();
}

void TransferRecorder::settle() noexcept {
  while (!under_way_.empty()) {
    const UnderWay& oldest = under_way_.front();
    try {
      if (!oldest.completion.done()) return;
      const std::int64_t copy_ns = oldest.completion.copy_ns();
      if (copy_ns >= 0) op_->transferred({.timed_bytes = oldest.bytes, .copy_ns = copy_ns});
    } catch (const Error&) {
      // A copy that failed has no time; its receiver gets the error.
    }
    under_way_.pop_front();
  }
}

void TransferRecorder::finish() noexcept {
  for (const UnderWay& one : under_way_) {
    try {
      one.completion.wait();
    } catch (const Error&) {
      // As above.
    }
  }
  settle();
}

}  // namespace headrace::transport
