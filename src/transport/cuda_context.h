// State of an open CUDA device: its primary context, the stream for copies, events.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "headrace/transport/block_ring.h"
#include "headrace/transport/cuda_driver.h"

namespace headrace::transport {

/// The retained primary context with one non-blocking stream. Shared by everything that must end before it.
class CudaContext {
 public:
  CudaContext(std::shared_ptr<const CudaDriver> driver, int index);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const noexcept { return *driver_; }
  CudaStream stream() const noexcept { return stream_; }

  /// The context as the calling thread's current one, for a scope; what was current before comes back.
  class Current {
   public:
    explicit Current(const CudaContext& context);
    /// Does not throw, for clearing up: without a context, CUDA refuses what follows.
    Current(const CudaContext& context, std::nothrow_t) noexcept;
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const CudaDriver& driver_;
    bool pushed_ = false;
  };

 private:
  std::shared_ptr<const CudaDriver> driver_;
  CudaDeviceHandle device_ = 0;
  CudaContextHandle context_ = nullptr;
  CudaStream stream_ = nullptr;
};

/// A point on a stream.
class CudaMark {
 public:
  /// Raises DeviceError. `timed`: two of them tell the time between them.
  CudaMark(std::shared_ptr<CudaContext> context, bool timed);
  ~CudaMark();
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;

  void record(CudaStream stream);
  /// True when everything before the mark is done. Raises DeviceError if that failed.
  bool reached() const;
  void wait() const;
  /// Later work on `stream` begins after the mark.
  void hold(CudaStream stream) const;
  /// Below 0 where CUDA cannot tell.
  std::int64_t ns_since(const CudaMark& earlier) const noexcept;

 private:
  std::shared_ptr<CudaContext> context_;
  CudaEvent event_ = nullptr;
};

/// The device's own memory. Its alignment is 256 bytes at least (CUDA C++ Programming Guide).
class CudaMemory : public BlockMemory {
 public:
  explicit CudaMemory(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {}
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) noexcept override;

 private:
  std::shared_ptr<CudaContext> context_;
};

/// Page-locked host memory.
class PinnedMemory : public BlockMemory {
 public:
  explicit PinnedMemory(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {}
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) noexcept override;

 private:
  std::shared_ptr<CudaContext> context_;
};

}  // namespace headrace::transport
