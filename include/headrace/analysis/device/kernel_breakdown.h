// How much of a device's busy time went to which kinds of work, alone and at the same time.
#pragma once

#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

using KernelBreakdownColumns = ColumnList<
    RankColumns,
    Text<"kind",
         "computation, communication, memory, other; several: computation overlapping communication.">,
    Number<"total_s">, Number<"total_pct", "Of the busy time, to which the rows of a rank sum.">>;

/// For each rank one row per combination of kinds that ran at the same time, the longest first. Each moment is
/// in exactly one row.
Table kernel_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
