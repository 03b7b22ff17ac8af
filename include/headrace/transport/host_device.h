// Host memory as a device: the copy that every machine can make, and one that can be made slow on purpose.
#pragma once

#include <mutex>

#include "headrace/transport/block_ring.h"
#include "headrace/transport/device.h"

namespace headrace::transport {

/// Copies into a ring of host buffers, in the calling thread. The device of embedded use, and of pipelines
/// that are tested where no accelerator is: with `bandwidth`, a copy holds the one bus for bytes / bandwidth
/// and sleeps for what the memcpy did not take (`cancel` ends the sleep, the bytes are there by then).
class HostDevice : public Device {
 public:
  /// Raises UsageError for a bandwidth that is not positive and for sizes that cannot be, DeviceError where
  /// memory is short.
  explicit HostDevice(const DeviceOptions& options = {});

  MemoryKind memory_kind() const noexcept override { return MemoryKind::host; }
  Copied copy(std::span<const HostBytes> arrays, Block& into) override;
  void read_back(std::span<std::byte> to, const Block& from, std::size_t offset) override;
  void make_stream_wait(void*, const Completion&) override {}
  void give_back_after(Block block, std::span<void* const>) override { block.give_back(); }

 private:
  std::optional<double> bandwidth_;
  std::mutex bus_;
};

/// Host memory for large copies, faulted in once. Blocks below 2 MiB are aligned to 64 bytes; larger ones are mapped on 2 MiB boundaries and ask for huge
/// pages. Every page is written once before the block is handed out: a first copy into fresh memory takes
/// twice as long.
class HostMemory : public BlockMemory {
 public:
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) noexcept override;
};

}  // namespace headrace::transport
