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

// --- how much of the communication was hidden behind computation ---

using OverlapColumns = ColumnList<
    RankColumns, Number<"communication_s", "Some kernel of the kind ran.">, Number<"computation_s">,
    Number<"overlap_s", "Both ran.">,
    Number<
        "overlap_pct",
        "Of the communication: close to 100 it costs nothing, close to 0 all of it is added to the step.">>;

/// One row per rank that has work on a device.
Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

// --- how much of the busy time went to which kinds of work, alone and at the same time ---

using KernelBreakdownColumns = ColumnList<
    RankColumns,
    Text<"kind",
         "computation, communication, memory, other; several: computation overlapping communication.">,
    Number<"total_s">, Number<"total_pct", "Of the busy time, to which the rows of a rank sum.">>;

/// For each rank one row per combination of kinds that ran at the same time, the longest first. Each moment is
/// in exactly one row.
Table kernel_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
