// A fixed number of memory blocks that batches borrow: the buffers of a device.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/queues/eventcount.h"

namespace headrace::transport {

/// The source of a ring's blocks: host memory, page-locked memory, a device's own memory.
class BlockMemory {
 public:
  virtual ~BlockMemory() = default;
  /// At least `bytes` (> 0), aligned to kAlignment, ready to be written without a page fault. Raises
  /// DeviceError.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* data, std::size_t bytes) noexcept = 0;
};

/// Arrays begin at multiples of this within a block: one cache line, the widest vector register.
inline constexpr std::size_t kAlignment = 64;

class BlockRing;

/// One block of a ring, borrowed. Move-only; returns when it is destroyed, on any thread, also after the
/// device that it came from is gone.
class Block {
 public:
  Block() = default;
  ~Block() { give_back(); }
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  explicit operator bool() const noexcept { return data_ != nullptr; }
  /// An address in the device's memory: of a CUDA device, not one that the host may read.
  std::byte* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }

  bool is_of(const BlockRing& ring) const noexcept { return ring_.get() == &ring; }

  /// Fence for the block's next user (a device's event, say); it travels with the memory.
  std::shared_ptr<void>& fence() noexcept { return fence_; }

  void give_back() noexcept;

 private:
  friend class BlockRing;
  std::shared_ptr<BlockRing> ring_;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::shared_ptr<void> fence_;
};

enum class AcquireOutcome {
  acquired,
  timed_out,    ///< the deadline passed
  cancelled,    ///< BlockRing::cancel
  interrupted,  ///< a signal handler ran in this thread; call again to go on waiting
};

struct Acquired {
  AcquireOutcome outcome = AcquireOutcome::acquired;
  Block block;                 ///< empty unless acquired
  std::int64_t waited_ns = 0;  ///< 0 if a block was free at once
};

/// Blocks are made once and kept: the first lap makes them (or `buffer_bytes` at construction), later ones
/// reuse them without a system call. The block that came back last is lent first; it is the warmest. A batch
/// larger than the block at hand makes that block grow, by half at least, up to `max_bytes`.
///
/// Thread-safe. Memory is released with the last of ring and borrowed blocks.
class BlockRing : public std::enable_shared_from_this<BlockRing> {
 public:
  using Clock = std::chrono::steady_clock;

  /// `buffer_bytes` 0: blocks are made when they are first needed. Raises UsageError for sizes that cannot
  /// be, DeviceError if memory is short.
  static std::shared_ptr<BlockRing> make(std::unique_ptr<BlockMemory> memory, std::size_t buffers,
                                         std::size_t buffer_bytes, std::size_t max_bytes);
  ~BlockRing();
  BlockRing(const BlockRing&) = delete;
  BlockRing& operator=(const BlockRing&) = delete;

  /// A block of at least `bytes`; waits for one until `deadline`. Raises UsageError above `max_bytes`,
  /// DeviceError if the block cannot grow (it stays in the ring, as it was or empty).
  Acquired acquire(std::size_t bytes, Clock::time_point deadline = Clock::time_point::max());

  /// Every waiting and later `acquire` returns `cancelled` at once, until `resume`.
  void cancel() noexcept;
  void resume() noexcept;

  /// Sleeps until `until`; returns early, with false, when the ring is cancelled.
  bool sleep_until(Clock::time_point until) noexcept;

  std::size_t buffers() const noexcept { return buffers_; }
  std::size_t max_bytes() const noexcept { return max_bytes_; }
  std::size_t free_blocks() const noexcept;

 private:
  friend class Block;
  struct Slot {
    std::byte* data = nullptr;
    std::size_t capacity = 0;
    std::shared_ptr<void> fence;
  };

  BlockRing(std::unique_ptr<BlockMemory> memory, std::size_t buffers, std::size_t max_bytes);
  AcquireOutcome take(std::size_t bytes, Clock::time_point deadline, Slot& slot, std::int64_t& waited_ns);
  bool try_take(std::size_t bytes, Slot& slot, AcquireOutcome& outcome) noexcept;
  void grow(Slot& slot, std::size_t bytes);
  void put_back(Slot slot) noexcept;

  const std::unique_ptr<BlockMemory> memory_;
  const std::size_t buffers_;
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;
  std::vector<Slot> free_;  ///< last in, first out
  bool cancelled_ = false;
  queues::EventCount changed_;     ///< a block came back, or the ring was cancelled
  queues::EventCount cancelling_;  ///< the ring was cancelled
};

}  // namespace headrace::transport
