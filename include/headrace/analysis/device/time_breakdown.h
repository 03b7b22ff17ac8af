// How much of its time a device computed, did something else, or did nothing.
#pragma once

#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

using TimeBreakdownColumns = ColumnList<
    RankColumns, Number<"idle_s", "Nothing ran: much of it means that the device waits for the host.">,
    Number<"compute_s", "Some computation ran.">,
    Number<"non_compute_s",
           "Only communication or copies ran: much of it means that it waits for other devices or for data.">,
    Number<"kernel_span_s", "From the first start to the last end of anything; the three sum to it.">,
    Number<"idle_pct">, Number<"compute_pct">, Number<"non_compute_pct">>;

/// One row per rank that has work on a device.
Table time_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
