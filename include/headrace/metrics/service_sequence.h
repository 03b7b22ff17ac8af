// A bounded run of consecutive service times, wall and CPU, for what a histogram forgets: their order.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// Items whose CPU time is read: all that take >= 10 ms; of faster ones a burst of 8 in a row every
/// 25 ms. A thread-clock read is a system call: 0.3 us while it is warm, several after a millisecond of other
/// work. So sampling costs a few tenths of a percent at most, at any rate of items.
struct BurstSampling {
  static constexpr std::int64_t kAlwaysNs = 10'000'000;
  static constexpr std::uint32_t kBurst = 8;
  static constexpr std::int64_t kPauseNs = 25'000'000;

  Relaxed<std::int64_t> next_ns;  ///< Clock: the next burst begins here
  Relaxed<std::uint32_t> left;    ///< items left in this burst

  /// Asked before an item begins. `last_ns`: how long the last one took.
  bool take(std::int64_t now, std::int64_t last_ns) noexcept {
    if (last_ns >= kAlwaysNs) return true;
    if (left.load() > 0) {
      left.store(left.load() - 1);
      return true;
    }
    if (now < next_ns.load()) return false;
    next_ns.store(now + kPauseNs);
    left.store(kBurst - 1);
    return true;
  }

  void reset() noexcept {
    next_ns.store(0);
    left.store(0);
  }
};

/// The newest 128 sampled items (see BurstSampling).
struct ServiceSequence {
  static constexpr std::uint32_t kLength = 128;

  struct Sample {
    Relaxed<std::uint32_t> index;  ///< low bits of the writer's item number
    Relaxed<float> wall_ns;
    Relaxed<float> cpu_ns;  ///< negative: not taken
  };

  Relaxed<std::uint64_t> count;  ///< samples ever written; the newest is at (count - 1) % kLength
  std::array<Sample, kLength> samples;

  void add(std::uint64_t item, std::int64_t wall_ns, std::int64_t cpu_ns) noexcept {
    Sample& sample = samples[count.load() % kLength];
    sample.index.store(static_cast<std::uint32_t>(item));
    sample.wall_ns.store(static_cast<float>(wall_ns));
    sample.cpu_ns.store(static_cast<float>(cpu_ns));
    count.bump(1);
  }

  /// The samples of another writer behind these; item numbers stay those of their writers.
  void append(const ServiceSequence& other) noexcept {
    const std::uint64_t end = other.count.load();
    const std::uint64_t begin = end > kLength ? end - kLength : 0;
    count.bump(begin);  // only counted: they are overwritten there
    for (std::uint64_t i = begin; i < end; ++i) {
      const Sample& from = other.samples[i % kLength];
      Sample& to = samples[count.load() % kLength];
      to.index.store(from.index.load());
      to.wall_ns.store(from.wall_ns.load());
      to.cpu_ns.store(from.cpu_ns.load());
      count.bump(1);
    }
  }

  void reset() noexcept { count.store(0); }
};

/// The slowest items seen, with their running numbers. Unordered; single writer.
struct SlowestItems {
  static constexpr int kLength = 8;

  struct Item {
    Relaxed<std::int64_t> ns;
    Relaxed<std::uint64_t> index;
  };
  std::array<Item, kLength> items;
  Relaxed<std::int64_t> threshold_ns;  ///< the smallest in the list; faster items do not get in

  void add(std::uint64_t index, std::int64_t ns) noexcept {
    if (ns <= threshold_ns.load()) return;
    Item* smallest = &items[0];
    for (Item& item : items) {
      if (item.ns.load() < smallest->ns.load()) smallest = &item;
    }
    smallest->ns.store(ns);
    smallest->index.store(index);
    std::int64_t least = ns;
    for (const Item& item : items) {
      if (item.ns.load() < least) least = item.ns.load();
    }
    threshold_ns.store(least);
  }

  void reset() noexcept {
    for (Item& item : items) {
      item.ns.store(0);
      item.index.store(0);
    }
    threshold_ns.store(0);
  }
};

}  // namespace headrace::metrics
