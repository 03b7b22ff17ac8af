#include "transport/cuda_copy.h"

#include "headrace/profile/errors.h"

namespace headrace::transport {

CudaCopy::~CudaCopy() {
  if (!is_ordered_ || finished_) return;
  try {
    end_.wait();
  } catch (const Error&) {
    // The device is lost, and with it whoever could still read the staging buffer.
  }
}

void CudaCopy::finish() noexcept {
  finished_ = true;
  copy_ns_ = end_.ns_since(begin_);
  staging_.give_back();
}

void CudaCopy::raise_failure() const {
  if (failure_) throw DeviceError(*failure_);
}

bool CudaCopy::done() {
  const std::scoped_lock lock(mutex_);
  raise_failure();
  if (finished_) return true;
  try {
    if (!end_.reached()) return false;
  } catch (const DeviceError& error) {
    failure_ = error.what();
    throw;
  }
  finish();
  return true;
}

void CudaCopy::wait() {
  {
    const std::scoped_lock lock(mutex_);
    raise_failure();
    if (finished_) return;
  }
  // Without the lock: others may ask meanwhile whether it is done.
  std::optional<std::string> failed;
  try {
    end_.wait();
  } catch (const DeviceError& error) {
    failed = error.what();
  }
  const std::scoped_lock lock(mutex_);
  if (failed) failure_ = std::move(failed);
  raise_failure();
  if (!finished_) finish();
}

std::int64_t CudaCopy::copy_ns() {
  const std::scoped_lock lock(mutex_);
  return copy_ns_;
}

}  // namespace headrace::transport
