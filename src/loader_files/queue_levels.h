// Levels of a queue as its histogram.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/profile/queue_profile.h"

namespace headrace::loader_files {

/// Fills the queue's histogram with levels[begin, end); none of them is negative.
template <class Levels>
void fill_queue(const Levels& levels, std::size_t begin, std::size_t end, profile::QueueProfile& queue) {
  constexpr std::int64_t kMaxBins = 64;  // levels that have a bin of their own
  end = std::min(end, levels.size());
  if (begin >= end) {
    queue.samples = 0;
    return;
  }
  const std::int64_t highest = *std::max_element(levels.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 levels.begin() + static_cast<std::ptrdiff_t>(end));
  const std::int64_t top = std::max<std::int64_t>(queue.capacity, highest);
  queue.levels_per_bin = static_cast<int>(top / kMaxBins + 1);
  queue.occupancy.assign(static_cast<std::size_t>(top / queue.levels_per_bin + 1), 0);
  const auto count = static_cast<double>(end - begin);
  double sum = 0;
  double empty = 0;
  double full = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const std::int64_t level = levels[i];
    queue.occupancy[static_cast<std::size_t>(level / queue.levels_per_bin)] += 1 / count;
    sum += static_cast<double>(level);
    empty += level == 0 ? 1 : 0;
    full += queue.capacity > 0 && level >= queue.capacity ? 1 : 0;
  }
  queue.samples = end - begin;
  queue.mean = sum / count;
  queue.empty_share = empty / count;
  queue.full_share = full / count;
}

}  // namespace headrace::loader_files
