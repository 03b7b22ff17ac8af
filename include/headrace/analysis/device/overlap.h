// How much of the communication was hidden behind computation.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

/// One row per rank that has work on a device:
///
///     rank [device] communication_s computation_s overlap_s overlap_pct
///
/// Times in which some kernel of the kind ran, and both did; `overlap_pct` is of the communication, no figure
/// if there is none. How to read it: close to 100 communication costs nothing, close to 0 every second of
/// it is added to the step.
Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
