// How much launched work waited in front of each stream.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

struct QueueLengthOptions {
  Scope scope;
  /// How many pieces of work a stream takes before a launch blocks (CUDA: 1024).
  std::int64_t capacity = 1024;
};

using QueueLengthSeriesColumns =
    ColumnList<StreamColumns, Integer<"time_ns">,
               Integer<"queue_length", "Holds until the next row of the stream.">>;
using QueueLengthColumns =
    ColumnList<StreamColumns, Integer<"launches">,
               Number<"mean", "Over time; close to 0, the device runs dry and waits for the host.">,
               Number<"p25">, Number<"p50">, Number<"p75">, Integer<"max">,
               Number<"full_s", "At the capacity or above: the host is stopped in its launches.">,
               Number<"full_pct">>;

struct QueueLength {
  /// One row per change, by stream and time.
  Table series;
  /// One row per stream. Mean and quantiles are over time, from the stream's first launch to the start of its
  /// last work.
  Table summary;
};

/// Work waits from the start of its launch until its own start; each kernel of a launched graph counts by
/// itself. Work whose launch is not in the file is left out. Where both fall into one moment it is counted
/// before it is taken away, so the length is never negative.
QueueLength queue_length(std::span<const trace::Trace> traces, const QueueLengthOptions& options = {});

}  // namespace headrace::analysis::device
