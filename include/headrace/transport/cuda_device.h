// A CUDA device: blocks of its memory, copies on a stream of their own, through page-locked staging buffers.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "headrace/transport/cuda_driver.h"
#include "headrace/transport/device.h"

namespace headrace::transport {

class CudaContext;
class CudaCopy;

/// Copies overlap with kernels: arrays in page-locked memory are copied by the device's engine as they are;
/// pageable ones are first copied by the calling thread into a page-locked staging buffer
/// (DeviceOptions::pin) and then by the engine. `copy` returns when the engine has its orders.
///
/// The device's primary context is used, so addresses mean the same to the CUDA runtime and to frameworks.
/// A reader of a block makes its stream wait for the copy (`make_stream_wait`), and gives the
/// block back with `give_back_after`, so that no later copy overwrites what kernels still read.
///
/// Thread-safe. A failure of CUDA is a DeviceError with CUDA's own name for it.
class CudaDevice : public Device {
 public:
  /// Raises DeviceError where driver or device are not there.
  CudaDevice(int index, const DeviceOptions& options);
  ~CudaDevice() override;

  MemoryKind memory_kind() const noexcept override { return MemoryKind::cuda; }
  int index() const noexcept override { return index_; }
  Copied copy(std::span<const HostBytes> arrays, Block& into) override;

  void read_back(std::span<std::byte> to, const Block& from, std::size_t offset) override;
  void make_stream_wait(void* stream, const Completion& completion) override;
  void give_back_after(Block block, std::span<void* const> streams) override;

 private:
  struct Opened;
  CudaDevice(int index, const DeviceOptions& options, Opened opened);
  static Opened open(int index, const DeviceOptions& options);
  bool is_pinned(HostBytes array) const noexcept;
  Block staging_block(std::size_t bytes);
  void put_on_stream(std::span<const HostBytes> arrays, const std::vector<bool>& pinned,
                     const std::vector<std::size_t>& offsets, Block& into, CudaCopy& copy);

  const int index_;
  const bool pin_;
  std::shared_ptr<CudaContext> context_;
  std::shared_ptr<BlockRing> staging_;
  std::mutex mutex_;                                 ///< one copy is put on the stream at a time
  std::deque<std::shared_ptr<CudaCopy>> under_way_;  ///< oldest first; they hold the staging buffers
};

}  // namespace headrace::transport
