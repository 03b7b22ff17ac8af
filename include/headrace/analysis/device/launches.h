// Every call that started work on a device: what it cost the host, and how long the work waited.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

struct LaunchesOptions {
  Scope scope;
  /// Also calls that started nothing but copies and fills.
  bool memory = true;
};

/// One row per call, by its start:
///
///     rank correlation name row device_row works start_ns host_s device_s delay_s
///
/// Any runtime or driver call that has work on the device counts, whatever its name (`cudaLaunchKernel`,
/// `cuLaunchKernelEx`, `hipLaunchKernel`, `cudaGraphLaunch`, ...). `works` is how many pieces of work it
/// started (a graph: all its nodes), `device_s` the sum of their durations, `device_row` the first of them.
/// `host_s` is the call's own duration. `delay_s` runs from its end to the start of the first work, 0 where
/// that began earlier. `row` and `device_row` are rows of the trace's columns; `start_ns` is on the clock of
/// the file.
///
/// How to read it: `device_s` below `host_s` means kernels too short to be worth their launch; a long delay
/// means that the stream was busy, or that the work waited for an event.
Table launches(std::span<const trace::Trace> traces, const LaunchesOptions& options = {});

}  // namespace headrace::analysis::device
