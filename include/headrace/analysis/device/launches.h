// Every call that started work on a device: what it cost the host, and how much work waited, for how long.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

struct LaunchesOptions {
  Scope scope;
  /// Also calls that started nothing but copies and fills.
  bool memory = true;
};

using LaunchesColumns = ColumnList<
    Integer<"rank">, Integer<"correlation">, Text<"name">, Integer<"row", "Of the trace's events.">,
    Integer<"device_row", "Of the first work that it started.">,
    Integer<"works", "Pieces of work that it started; a graph: all its nodes.">, Integer<"start_ns">,
    Number<"host_s", "Of the call itself.">,
    Number<"device_s", "Sum of the work; below host_s, kernels are too short to be worth their launch.">,
    Number<"delay_s",
           "From its end to the start of the first work, at least 0; long: the stream was busy, or the work "
           "waited for an event.">>;

/// One row per call, by its start.
///
/// Any runtime or driver call that has work on the device counts, whatever its name (`cudaLaunchKernel`,
/// `cuLaunchKernelEx`, `hipLaunchKernel`, `cudaGraphLaunch`, ...).
Table launches(std::span<const trace::Trace> traces, const LaunchesOptions& options = {});

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
