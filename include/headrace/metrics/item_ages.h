// For how long the items of a first-in, first-out queue lie in it.
#pragma once

#include <array>
#include <cstdint>

namespace headrace::metrics {

/// Keeps when each item was put, by its place in the queue. The age of an item is unknown if it was in the queue
/// before the first call, or was put with more than `kMaxItems` in the queue.
///
/// Not thread-safe: call it with the queue's own lock held. Never allocates.
class ItemAges {
 public:
  static constexpr std::int64_t kMaxItems = 256;

  /// An item was put at `now_ns`, and the queue holds `level` items with it.
  void put(std::int64_t level, std::int64_t now_ns) noexcept {
    if (level < 1 || level > kMaxItems) return;
    const std::int64_t place = taken_ + level - 1;
    slot(place) = {place, now_ns};
  }

  /// The first item was taken at `now_ns`. Returns its age in nanoseconds; -1: unknown.
  std::int64_t take(std::int64_t now_ns) noexcept {
    const Slot first = slot(taken_);
    const bool known = first.place == taken_;
    ++taken_;
    return known && now_ns >= first.put_ns ? now_ns - first.put_ns : -1;
  }

 private:
  struct Slot {
    std::int64_t place = -1;
    std::int64_t put_ns = 0;
  };
  Slot& slot(std::int64_t place) noexcept {
    return slots_[static_cast<std::size_t>(place) % static_cast<std::size_t>(kMaxItems)];
  }

  std::array<Slot, kMaxItems> slots_{};
  std::int64_t taken_ = 0;
};

}  // namespace headrace::metrics
