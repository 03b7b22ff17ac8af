#include "headrace/transport/block_ring.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/metrics/clock.h"
#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

constexpr std::size_t kMaxBuffers = 4096;

/// Sizes in steps, so that batches of nearly one size do not make a block grow again and again.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t step = bytes >= kHugePage ? kHugePage : kPage;
  return (bytes + step - 1) / step * step;
}

}  // namespace

Block::Block(Block&& other) noexcept
    : ring_(std::move(other.ring_)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      fence_(std::move(other.fence_)) {}

Block& Block::operator=(Block&& other) noexcept {
  if (this != &other) {
    give_back();
    ring_ = std::move(other.ring_);
    data_ = std::exchange(other.data_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
    fence_ = std::move(other.fence_);
  }
  return *this;
}

void Block::give_back() noexcept {
  if (ring_ == nullptr) return;
  ring_->put_back({std::exchange(data_, nullptr), std::exchange(capacity_, 0), std::move(fence_)});
  ring_.reset();
}

BlockRing::BlockRing(std::unique_ptr<BlockMemory> memory, std::size_t buffers, std::size_t max_bytes)
    : memory_(std::move(memory)), buffers_(buffers), max_bytes_(max_bytes) {
  // Room for all of them: giving a block back never allocates.
  free_.reserve(buffers_);
  free_.resize(buffers_);
}

std::shared_ptr<BlockRing> BlockRing::make(std::unique_ptr<BlockMemory> memory, std::size_t buffers,
                                           std::size_t buffer_bytes, std::size_t max_bytes) {
  if (buffers < 1 || buffers > kMaxBuffers) {
    throw UsageError("a device has 1 to " + std::to_string(kMaxBuffers) + " buffers, not " +
                     std::to_string(buffers));
  }
  if (buffer_bytes > max_bytes) {
    throw UsageError("buffers of " + std::to_string(buffer_bytes) + " bytes are above the limit of " +
                     std::to_string(max_bytes) + ": raise max_buffer_bytes");
  }
  std::shared_ptr<BlockRing> ring(new BlockRing(std::move(memory), buffers, max_bytes));
  if (buffer_bytes > 0) {
    for (Slot& slot : ring->free_) ring->grow(slot, buffer_bytes);
  }
  return ring;
}

BlockRing::~BlockRing() {
  for (const Slot& slot : free_) {
    if (slot.data != nullptr) memory_->release(slot.data, slot.capacity);
  }
}

bool BlockRing::try_take(std::size_t bytes, Slot& slot, AcquireOutcome& outcome) noexcept {
  const std::scoped_lock lock(mutex_);
  outcome = AcquireOutcome::cancelled;
  if (cancelled_) return true;
  if (free_.empty()) return false;
  // The last one that is large enough; where none is, the last one grows.
  auto found = free_.end() - 1;
  for (auto one = free_.end(); one != free_.begin();) {
    --one;
    if (one->capacity >= bytes) {
      found = one;
      break;
    }
  }
  slot = std::move(*found);
  free_.erase(found);
  outcome = AcquireOutcome::acquired;
  return true;
}

AcquireOutcome BlockRing::take(std::size_t bytes, Clock::time_point deadline, Slot& slot,
                               std::int64_t& waited_ns) {
  AcquireOutcome outcome = AcquireOutcome::acquired;
  if (try_take(bytes, slot, outcome)) return outcome;
  // Also for a deadline that no kernel takes, such as the earliest one.
  if (deadline <= Clock::now()) return AcquireOutcome::timed_out;
  const std::int64_t began = metrics::Clock::now_ns();
  for (;;) {
    const auto ticket = changed_.prepare();
    if (try_take(bytes, slot, outcome)) {
      changed_.cancel(ticket);
      break;
    }
    const queues::Wake wake = changed_.wait(ticket, deadline);
    if (wake == queues::Wake::notified) continue;
    // A block returned while the wait ended otherwise is still taken.
    if (try_take(bytes, slot, outcome)) break;
    outcome = wake == queues::Wake::timed_out ? AcquireOutcome::timed_out : AcquireOutcome::interrupted;
    break;
  }
  waited_ns = std::max<std::int64_t>(0, metrics::Clock::now_ns() - began);
  return outcome;
}

Acquired BlockRing::acquire(std::size_t bytes, Clock::time_point deadline) {
  if (bytes > max_bytes_) {
    throw UsageError("a batch of " + std::to_string(bytes) + " bytes does not fit into a buffer of at most " +
                     std::to_string(max_bytes_) + " bytes: raise max_buffer_bytes, or make batches smaller");
  }
  Acquired acquired;
  Slot slot;
  acquired.outcome = take(bytes, deadline, slot, acquired.waited_ns);
  if (acquired.outcome != AcquireOutcome::acquired) return acquired;
  if (slot.data == nullptr || slot.capacity < bytes) {
    try {
      grow(slot, bytes);
    } catch (...) {
      put_back(std::move(slot));
      throw;
    }
  }
  acquired.block.ring_ = shared_from_this();
  acquired.block.data_ = slot.data;
  acquired.block.capacity_ = slot.capacity;
  acquired.block.fence_ = std::move(slot.fence);
  return acquired;
}

void BlockRing::grow(Slot& slot, std::size_t bytes) {
  const std::size_t wanted = std::max({bytes, slot.capacity + slot.capacity / 2, std::size_t{1}});
  const std::size_t capacity = std::max(bytes, std::min(rounded(wanted), max_bytes_));
  if (slot.data != nullptr) memory_->release(slot.data, slot.capacity);
  slot = {};
  slot.data = memory_->allocate(std::max(capacity, std::size_t{1}));
  slot.capacity = std::max(capacity, std::size_t{1});
}

void BlockRing::put_back(Slot slot) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(slot));
  }
  changed_.notify_one();
}

void BlockRing::cancel() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  cancelling_.notify_all();
}

void BlockRing::resume() noexcept {
  const std::scoped_lock lock(mutex_);
  cancelled_ = false;
}

bool BlockRing::sleep_until(Clock::time_point until) noexcept {
  while (Clock::now() < until) {
    const auto ticket = cancelling_.prepare();
    bool stop = false;
    {
      const std::scoped_lock lock(mutex_);
      stop = cancelled_;
    }
    if (stop) {
      cancelling_.cancel(ticket);
      return false;
    }
    cancelling_.wait(ticket, until);
  }
  return true;
}

std::size_t BlockRing::free_blocks() const noexcept {
  const std::scoped_lock lock(mutex_);
  return free_.size();
}

}  // namespace headrace::transport
