// The slot-ticket ring with nothing to it: no end, no capacity but its size, nothing counted, plain integers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace headrace::bench {

class BareRing {
 public:
  explicit BareRing(std::uint64_t size) : mask_(size - 1), slots_(std::make_unique<Slot[]>(size)) {
    for (std::uint64_t i = 0; i < size; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }
  bool push(std::uint64_t item) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      const auto turn = static_cast<std::int64_t>(slot.turn.load(std::memory_order_acquire) - at);
      if (turn < 0) return false;
      if (turn > 0) {
        at = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        slot.item = item;
        slot.turn.store(at + 1, std::memory_order_release);
        return true;
      }
    }
  }
  bool pop(std::uint64_t& item) noexcept {
    std::uint64_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      const auto turn = static_cast<std::int64_t>(slot.turn.load(std::memory_order_acquire) - (at + 1));
      if (turn < 0) return false;
      if (turn > 0) {
        at = head_.load(std::memory_order_relaxed);
      } else if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        item = slot.item;
        slot.turn.store(at + mask_ + 1, std::memory_order_release);
        return true;
      }
    }
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> turn;
    std::uint64_t item;
  };
  const std::uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};
};

}  // namespace headrace::bench
