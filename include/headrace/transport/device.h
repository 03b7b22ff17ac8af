// Destination of batches: one small interface, whatever the memory behind it is.
//
//     auto device = transport::open_device("cpu", {.buffers = 4, .buffer_bytes = 64 << 20});
//     auto acquired = device->acquire(transport::bytes_needed(arrays));         // waits while all are lent
//     const auto copied = device->copy(arrays, acquired.block);                 // may go on by itself
//     queue.put({std::move(acquired.block), copied.offsets, copied.completion});
//
// The block goes back to the device's ring when its holder drops it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/metrics/transfer_cell.h"
#include "headrace/transport/block_ring.h"
#include "headrace/transport/completion.h"

namespace headrace::transport {

/// One array of a batch: its bytes in host memory, contiguous.
using HostBytes = std::span<const std::byte>;

struct DeviceOptions {
  std::size_t buffers = 4;       ///< blocks in the ring: batches on the device at a time
  std::size_t buffer_bytes = 0;  ///< size of a block at first; 0: of the first batch
  std::size_t max_buffer_bytes = std::size_t{4} << 30;  ///< blocks grow with the batches up to this
  /// Host memory only, bytes per second: a copy takes at least bytes / bandwidth, one copy at a time, as on a
  /// bus. Empty: as fast as memory is.
  std::optional<double> bandwidth = {};
  /// CUDA only: arrays in pageable memory go through page-locked staging buffers, so that their copy is
  /// asynchronous. False: the driver copies them, and `copy` returns when it has read them.
  bool pin = true;
  std::string cuda_library = "libcuda.so.1";  ///< CUDA only: the driver's library, as dlopen takes it
};

/// Result of one copy.
struct Copied {
  std::vector<std::size_t> offsets;  ///< of each array within the block; multiples of kAlignment
  std::int64_t bytes = 0;            ///< of the arrays, without the gaps between them
  std::int64_t pinned_bytes = 0;     ///< of these, from page-locked memory of the caller
  std::int64_t pageable_bytes = 0;   ///< ... and from pageable memory; neither where pinning means nothing
  Completion completion;
};

/// Kind of memory of a device's blocks; the numbers are DLPack's.
enum class MemoryKind : std::int32_t { host = 1, cuda = 2, cuda_host = 3 };

/// A destination of copies with its ring of blocks. Thread-safe; copies of several threads take turns where
/// the device has one way in.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "cpu", "cuda:0".
  const std::string& name() const noexcept { return name_; }
  virtual MemoryKind memory_kind() const noexcept = 0;
  virtual int index() const noexcept { return 0; }
  std::size_t buffers() const noexcept { return ring_->buffers(); }
  std::size_t free_buffers() const noexcept { return ring_->free_blocks(); }

  /// A block of at least `bytes`; waits until one is free, the deadline passes, or `cancel`. Raises
  /// UsageError above max_buffer_bytes, DeviceError if the device has no memory left.
  Acquired acquire(std::size_t bytes,
                   BlockRing::Clock::time_point deadline = BlockRing::Clock::time_point::max()) {
    return ring_->acquire(bytes, deadline);
  }

  /// Copies the arrays of a batch into a block of this device, each at a multiple of kAlignment. The arrays
  /// must stay as they are until the completion is done. Raises UsageError if they do not fit, DeviceError
  /// where the device refuses; then nothing of the block may be read.
  virtual Copied copy(std::span<const HostBytes> arrays, Block& into) = 0;

  /// Copies from a block to host memory, once what is under way into it is complete. Raises UsageError
  /// outside the block, DeviceError.
  virtual void read_back(std::span<std::byte> to, const Block& from, std::size_t offset) = 0;

  /// Streams are those of the device's own kind (a CUstream); host memory has none, and nothing to wait for.
  /// Work that is put on `stream` from now on begins after the copy; the host does not wait.
  virtual void make_stream_wait(void* stream, const Completion& completion) = 0;
  /// The block goes back to the ring at once; the next copy into it begins after the work that is on these
  /// streams now.
  virtual void give_back_after(Block block, std::span<void* const> streams) = 0;

  /// Ends every wait for a block, now and until `resume`; from any thread. A copy under way is finished.
  void cancel() noexcept { ring_->cancel(); }
  void resume() noexcept { ring_->resume(); }

 protected:
  Device(std::string name, std::shared_ptr<BlockRing> ring)
      : name_(std::move(name)), ring_(std::move(ring)) {}
  BlockRing& ring() noexcept { return *ring_; }
  /// Offsets of the arrays in a block of this device; UsageError if it is none, or too small.
  std::vector<std::size_t> lay_out_in(const Block& block, std::span<const HostBytes> arrays) const;
  /// UsageError where these bytes are not within a block of this device.
  void expect_within(const Block& block, std::size_t offset, std::size_t bytes) const;

 private:
  std::string name_;
  std::shared_ptr<BlockRing> ring_;
};

/// Bytes that a block needs for these arrays, gaps included. Raises UsageError if the sum cannot be.
std::size_t bytes_needed(std::span<const HostBytes> arrays);

/// Offset of each array. Raises UsageError if the arrays do not fit into `capacity`.
std::vector<std::size_t> lay_out(std::span<const HostBytes> arrays, std::size_t capacity);

/// "cpu", "cuda" (the first one), "cuda:1". Raises DeviceError for a device that is not there, naming those
/// that are; UsageError for options that cannot be.
std::shared_ptr<Device> open_device(std::string_view name, const DeviceOptions& options = {});

/// "cpu", "cuda:0", ...: what `open_device` can open here.
std::vector<std::string> available_devices(const DeviceOptions& options = {});

}  // namespace headrace::transport
