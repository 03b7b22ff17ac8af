// How much launched work waited in front of each stream.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

struct QueueLengthOptions {
  Scope scope;
  /// How many pieces of work a stream takes before a launch blocks (CUDA: 1024).
  std::int64_t capacity = 1024;
};

struct QueueLength {
  /// One row per change, by stream and time: rank device stream time_ns queue_length. `time_ns` is on the
  /// clock of the file, `queue_length` holds from then until the next row of the stream.
  Table series;
  /// One row per stream:
  ///
  ///     rank device stream launches mean p25 p50 p75 max full_s full_pct
  ///
  /// Mean and quantiles are over time, from the stream's first launch to the start of its last work.
  /// `full_s`: time at `capacity` or above. How to read it: a mean close to 0 means that the device runs dry
  /// and waits for the host, time at full means that the host is stopped in its launches.
  Table summary;
};

/// Work waits from the start of its launch until its own start; each kernel of a launched graph counts by
/// itself. Work whose launch is not in the file is left out. Where both fall into one moment it is counted
/// before it is taken away, so the length is never negative.
QueueLength queue_length(std::span<const trace::Trace> traces, const QueueLengthOptions& options = {});

}  // namespace headrace::analysis::device
