// Finish times of an ordered operator's items, to distinguish a slow item from those behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace headrace::pipeline {

/// Keeps the last kLength items by number. Any number of threads; an answer may miss what another thread
/// notes at this moment.
class FinishTimes {
 public:
  FinishTimes() : entries_(std::make_unique<Entry[]>(kLength)) {}

  void note(std::uint64_t number, std::int64_t now) noexcept {
    Entry& entry = entries_[number % kLength];
    entry.number_plus_one.store(0, std::memory_order_relaxed);
    entry.at_ns.store(now, std::memory_order_release);
    entry.number_plus_one.store(number + 1, std::memory_order_release);
  }
  /// When the first of the `ahead` items behind `number` was done; 0 if none is yet.
  std::int64_t first_younger(std::uint64_t number, std::int64_t ahead) const noexcept {
    std::int64_t first = 0;
    for (std::uint64_t younger = number + 1; younger <= number + static_cast<std::uint64_t>(ahead);
         ++younger) {
      const Entry& entry = entries_[younger % kLength];
      if (entry.number_plus_one.load(std::memory_order_acquire) != younger + 1) continue;
      const std::int64_t at = entry.at_ns.load(std::memory_order_acquire);
      if (entry.number_plus_one.load(std::memory_order_acquire) != younger + 1) continue;
      if (first == 0 || at < first) first = at;
    }
    return first;
  }

  static constexpr std::int64_t kLength = 1024;

 private:
  struct Entry {
    std::atomic<std::uint64_t> number_plus_one{0};
    std::atomic<std::int64_t> at_ns{0};
  };
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace headrace::pipeline
