// A bounded run of consecutive service times, wall and CPU, for what a histogram forgets: their order.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// The newest 128 recorded items. Items of >= 100 us are all recorded; faster ones in bursts of 8 in 512, because the
/// two thread-clock reads of an item cost 0.5 us. `should_sample` decides before the item begins.
struct ServiceSequence {
  static constexpr std::uint32_t kLength = 128;
  static constexpr std::int64_t kAlwaysNs = 100'000;
  static constexpr std::uint64_t kBurst = 8;
  static constexpr std::uint64_t kPeriod = 512;

  struct Sample {
    Relaxed<std::uint32_t> index;  ///< low bits of the writer's item number
    Relaxed<float> wall_ns;
    Relaxed<float> cpu_ns;  ///< negative: not taken
  };

  Relaxed<std::uint64_t> count;  ///< samples ever written; the newest is at (count - 1) % kLength
  std::array<Sample, kLength> samples;

  static bool should_sample(std::uint64_t item, std::int64_t last_service_ns) noexcept {
    return last_service_ns >= kAlwaysNs || item % kPeriod < kBurst;
  }

  void add(std::uint64_t item, std::int64_t wall_ns, std::int64_t cpu_ns) noexcept {
    Sample& sample = samples[count.load() % kLength];
    sample.index.store(static_cast<std::uint32_t>(item));
    sample.wall_ns.store(static_cast<float>(wall_ns));
    sample.cpu_ns.store(static_cast<float>(cpu_ns));
    count.bump(1);
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
