// How much of a device's busy time went to which kinds of work, alone and at the same time.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

/// For each rank one row per combination of kinds that ran at the same time, the longest first:
///
///     rank [device] kind total_s total_pct
///
/// `kind` is "computation", "communication", "memory", "other", or several: "computation overlapping
/// communication". Each moment is in exactly one row, so the rows of a rank sum to its busy time, and
/// `total_pct` is of that.
Table kernel_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
