// How full a queue was, weighted by time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// The bin that counts a level. Level 0 and level `capacity` always have a bin of their own.
struct OccupancyBins {
  std::int64_t capacity = 0;  ///< 0: unbounded; the last bin then holds every higher level
  std::int64_t levels_per_bin = 1;
  std::uint32_t bins = 0;

  /// One bin per level up to `max_bins` levels; above that, equal bins between the two ends.
  static OccupancyBins make(std::int64_t capacity, std::uint32_t max_bins) noexcept {
    if (capacity <= 0) return {0, 1, max_bins};
    if (capacity < max_bins) return {capacity, 1, static_cast<std::uint32_t>(capacity + 1)};
    const std::int64_t inner = max_bins - 2;
    // Both rounded up, without adding to a capacity that may be the largest integer.
    const std::int64_t per_bin = (capacity - 2) / inner + 1;
    const std::int64_t used = (capacity - 2) / per_bin + 1;
    return {capacity, per_bin, static_cast<std::uint32_t>(used + 2)};
  }

  std::uint32_t index(std::int64_t level) const noexcept {
    if (level <= 0 || bins == 0) return 0;
    if (capacity > 0 && level >= capacity) return bins - 1;
    const std::int64_t bin = levels_per_bin == 1 ? level : 1 + (level - 1) / levels_per_bin;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(bin, bins - 1));
  }
};

/// Nanoseconds of loop time spent at each level; the bins always sum to the elapsed time. Single writer.
///
/// How to read it: close to 1 at level 0, the operator to the right waits for this queue; close to 1 at full
/// capacity, the operator to the left cannot get rid of its items.
struct Occupancy {
  Relaxed<std::int64_t> level;
  Relaxed<std::int64_t> since_ns;  ///< loop time at which `level` was reached
  Relaxed<std::int64_t> level_ns;  ///< integral of level over time
  Relaxed<std::int64_t> empty_ns;
  Relaxed<std::int64_t> full_ns;

  /// Charges the time since the last change to the level that lasted, then takes on the new one.
  void set(std::int64_t loop_ns, std::int64_t new_level, const OccupancyBins& bins,
           std::span<Relaxed<std::int64_t>> time_at) noexcept {
    const std::int64_t old_level = level.load();
    const std::int64_t lasted = std::max<std::int64_t>(0, loop_ns - since_ns.load());
    if (!time_at.empty()) time_at[bins.index(old_level)].bump(lasted);
    level_ns.bump(lasted * old_level);
    if (old_level <= 0) empty_ns.bump(lasted);
    if (bins.capacity > 0 && old_level >= bins.capacity) full_ns.bump(lasted);
    level.store(new_level);
    // A clock that jumped back must not be counted twice: since only moves forward.
    if (lasted > 0) since_ns.store(loop_ns);
  }

  void reset(std::int64_t loop_ns, std::span<Relaxed<std::int64_t>> time_at) noexcept {
    for (auto& bin : time_at) bin.store(0);
    level_ns.store(0);
    empty_ns.store(0);
    full_ns.store(0);
    since_ns.store(loop_ns);
  }
};

}  // namespace headrace::metrics
