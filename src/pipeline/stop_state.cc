#include "headrace/pipeline/stop_state.h"

#include <utility>

namespace headrace::pipeline {

void StopState::stop() noexcept {
  if (stopped_.exchange(true, std::memory_order_acq_rel)) return;
  wake_();
}

void StopState::fail(std::exception_ptr error) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    // Stopped for another reason: whoever stopped it did not wait for this.
    if (error_ == nullptr && !stopped()) error_ = std::move(error);
  }
  stop();
}

std::exception_ptr StopState::error() const noexcept {
  const std::scoped_lock lock(mutex_);
  return error_;
}

}  // namespace headrace::pipeline
