// Values of a loop's counters at one moment: differences of two of these are figures of the time between.
//
//     const LoopTotals before = loop_totals(image, loader);
//     ...                                                    // a second later, from a newer image
//     const LoopTotals now = loop_totals(image, loader);
//     const double waited_s = now.wait_s - before.wait_s;    // of now.at_s - before.at_s
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/latency_histogram.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {

/// Times are seconds; all but the last two count since the start, and only grow.
struct LoopTotals {
  int rank = 0;
  bool running = false;  ///< its process runs on this machine
  bool ended = false;    ///< its recording was closed
  bool died = false;     ///< its process on this machine is gone without that
  double at_s = 0;       ///< the moment, on the monotonic clock of the rank's machine
  std::uint64_t steps = 0;
  /// In GetNext: with the call that goes on, and with the first batches of all epochs but the first.
  double wait_s = 0;
  double compute_s = 0;            ///< between two GetNext calls
  double sampled_compute_s = 0;    ///< of the steps whose CPU time was read
  double sampled_cpu_s = 0;        ///< CPU time of the loop's thread in them
  std::uint64_t device_steps = 0;  ///< with marks in the device's queue
  double device_s = 0;             ///< how long the device worked on them
  double device_host_s = 0;        ///< compute of the same steps
  double stalled_s = 0;            ///< how long the current GetNext has lasted; 0: none
  /// The last minute of loop time, or its last 512 steps where these are shorter, and the wait in it.
  double recent_s = 0;
  double recent_wait_s = 0;

  /// Counts by bucket and sums, of steady GetNext waits and of steps.
  struct Histogram {
    std::array<std::uint64_t, metrics::LatencyBuckets::kCount> buckets{};
    std::uint64_t count = 0;
    double sum_s = 0;
  };
  Histogram waits, step_times;
};

/// Totals of the segment's loader of this number; nothing recorded if there is no such loader. Thread-safe as
/// the image is.
LoopTotals loop_totals(const SegmentImage& image, std::uint32_t loader);

}  // namespace headrace::profile
