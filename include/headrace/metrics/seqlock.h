// One consistent view of a group of cells while their single writer continues.
#pragma once

#include <atomic>
#include <cstdint>

namespace headrace::metrics {

/// The writer is never delayed; a reader that was overtaken reads again.
/// Cells inside the group are Relaxed, so a torn read is stale at worst, never undefined.
class Seqlock {
 public:
  void write_begin() noexcept {
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Readers must see the odd number before any cell that follows.
    std::atomic_thread_fence(std::memory_order_release);
  }
  void write_end() noexcept {
    // Pairs with the acquire in read_begin: an even number means that the cells before it are complete.
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  std::uint32_t read_begin() const noexcept { return sequence_.load(std::memory_order_acquire); }
  bool read_valid(std::uint32_t begin) const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return (begin & 1U) == 0 && sequence_.load(std::memory_order_relaxed) == begin;
  }

 private:
  std::atomic<std::uint32_t> sequence_;
};

/// Scope of one update.
class SeqlockWrite {
 public:
  explicit SeqlockWrite(Seqlock& lock) noexcept : lock_(lock) { lock_.write_begin(); }
  ~SeqlockWrite() { lock_.write_end(); }
  SeqlockWrite(const SeqlockWrite&) = delete;
  SeqlockWrite& operator=(const SeqlockWrite&) = delete;

 private:
  Seqlock& lock_;
};

}  // namespace headrace::metrics
