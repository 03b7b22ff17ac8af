// The recording of one bounded queue.
#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/metrics/latency_histogram.h"
#include "headrace/metrics/occupancy.h"
#include "headrace/metrics/relaxed.h"
#include "headrace/metrics/seqlock.h"
#include "headrace/metrics/windows.h"

namespace headrace::metrics {

/// Written under the queue's own lock, so by one thread at a time.
struct alignas(64) QueueCell {
  Relaxed<std::int64_t> capacity;  ///< 0: unbounded
  Relaxed<std::int64_t> levels_per_bin;
  Relaxed<std::uint32_t> bins;
  Relaxed<std::uint32_t> first_bin;  ///< index of its first bin in the segment's bins
  Relaxed<std::uint32_t> track;      ///< 1 + the track that keeps its levels; 0: none
  Seqlock lock;
  Relaxed<std::uint32_t> begun;
  Relaxed<std::uint32_t> sampled;  ///< 1: at times too fast for a stamp on every item
  Occupancy occupancy;
  Relaxed<std::uint64_t> puts;  ///< start-up included, end marks not
  Relaxed<std::uint64_t> gets;
  Relaxed<std::uint64_t> samples;  ///< times at which its level was read, of a queue that nobody reports to
  Relaxed<std::int64_t> loop_puts;
  Relaxed<std::int64_t> loop_gets;
  WindowGrid grid;
  LatencyHistogram put_wait;  ///< every put, 0 if there was room
  LatencyHistogram get_wait;
  LatencyHistogram item_age;  ///< from an item's put to its get, where that is known
  WindowLog<5> windows;       ///< loop_puts, loop_gets, level_ns, empty_ns, full_ns
};

}  // namespace headrace::metrics
