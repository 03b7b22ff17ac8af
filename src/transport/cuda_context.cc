#include "transport/cuda_context.h"

#include <cmath>
#include <string>

namespace headrace::transport {

// --- context ---

CudaContext::CudaContext(std::shared_ptr<const CudaDriver> driver, int index) : driver_(std::move(driver)) {
  driver_->check(driver_->device_get(&device_, index), "cuDeviceGet");
  driver_->check(driver_->primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  try {
    const Current current(*this);
    driver_->check(driver_->stream_create(&stream_, kCudaStreamNonBlocking), "cuStreamCreate");
  } catch (...) {
    driver_->primary_context_release(device_);
    throw;
  }
}

CudaContext::~CudaContext() {
  {
    const Current current(*this, std::nothrow);
    driver_->stream_synchronize(stream_);
    driver_->stream_destroy(stream_);
  }
  driver_->primary_context_release(device_);
}

CudaContext::Current::Current(const CudaContext& context) : driver_(context.driver()) {
  driver_.check(driver_.context_push(context.context_), "cuCtxPushCurrent");
  pushed_ = true;
}

CudaContext::Current::Current(const CudaContext& context, std::nothrow_t) noexcept
    : driver_(context.driver()), pushed_(driver_.context_push(context.context_) == kCudaSuccess) {}

CudaContext::Current::~Current() {
  CudaContextHandle ours = nullptr;
  if (pushed_) driver_.context_pop(&ours);
}

// --- mark ---

CudaMark::CudaMark(std::shared_ptr<CudaContext> context, bool timed) : context_(std::move(context)) {
  const CudaContext::Current current(*context_);
  const CudaDriver& driver = context_->driver();
  driver.check(driver.event_create(&event_, timed ? kCudaEventDefault : kCudaEventDisableTiming),
               "cuEventCreate");
}

CudaMark::~CudaMark() {
  const CudaContext::Current current(*context_, std::nothrow);
  context_->driver().event_destroy(event_);
}

void CudaMark::record(CudaStream stream) {
  const CudaContext::Current current(*context_);
  context_->driver().check(context_->driver().event_record(event_, stream), "cuEventRecord");
}

bool CudaMark::reached() const {
  const CudaContext::Current current(*context_);
  const CudaResult result = context_->driver().event_query(event_);
  if (result == kCudaErrorNotReady) return false;
  context_->driver().check(result, "cuEventQuery");
  return true;
}

void CudaMark::wait() const {
  const CudaContext::Current current(*context_);
  context_->driver().check(context_->driver().event_synchronize(event_), "cuEventSynchronize");
}

void CudaMark::hold(CudaStream stream) const {
  const CudaContext::Current current(*context_);
  context_->driver().check(context_->driver().stream_wait_event(stream, event_, 0), "cuStreamWaitEvent");
}

std::int64_t CudaMark::ns_since(const CudaMark& earlier) const noexcept {
  const CudaContext::Current current(*context_, std::nothrow);
  float milliseconds = -1;
  if (context_->driver().event_elapsed(&milliseconds, earlier.event_, event_) != kCudaSuccess) return -1;
  return milliseconds >= 0 ? std::llround(static_cast<double>(milliseconds) * 1e6) : -1;
}

// --- memory ---

std::byte* CudaMemory::allocate(std::size_t bytes) {
  const CudaContext::Current current(*context_);
  CudaPointer address = 0;
  context_->driver().check(context_->driver().mem_alloc(&address, bytes),
                           "a buffer of " + std::to_string(bytes) + " bytes on the device");
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

void CudaMemory::release(std::byte* data, std::size_t) noexcept {
  const CudaContext::Current current(*context_, std::nothrow);
  // cuMemFree waits for the work that uses the memory.
  context_->driver().mem_free(static_cast<CudaPointer>(reinterpret_cast<std::uintptr_t>(data)));
}

std::byte* PinnedMemory::allocate(std::size_t bytes) {
  const CudaContext::Current current(*context_);
  void* data = nullptr;
  context_->driver().check(context_->driver().mem_host_alloc(&data, bytes, kCudaMemHostAllocPortable),
                           "a page-locked buffer of " + std::to_string(bytes) + " bytes");
  return static_cast<std::byte*>(data);
}

void PinnedMemory::release(std::byte* data, std::size_t) noexcept {
  const CudaContext::Current current(*context_, std::nothrow);
  context_->driver().mem_free_host(data);
}

}  // namespace headrace::transport
