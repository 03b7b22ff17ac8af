// How much of its time a device computed, did something else, or did nothing.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

/// One row per rank that has work on a device:
///
///     rank [device] idle_s compute_s non_compute_s kernel_span_s idle_pct compute_pct non_compute_pct
///
/// `kernel_span_s` runs from the first start to the last end of anything on the device. `compute_s` is the
/// time in which some computation ran, `non_compute_s` the time in which only other things did (communication
/// or copies that nothing hid), `idle_s` the rest. The three sum to the span. How to read it: much idle time
/// means that the device waits for the host, much non-compute time that it waits for other devices or for
/// data.
Table time_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
