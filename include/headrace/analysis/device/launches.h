// Every call that started work on a device: what it cost the host, and how long the work waited.
#pragma once

#include <span>

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

}  // namespace headrace::analysis::device
