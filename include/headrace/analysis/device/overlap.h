// How much of the communication was hidden behind computation.
#pragma once

#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

using OverlapColumns = ColumnList<
    RankColumns, Number<"communication_s", "Some kernel of the kind ran.">, Number<"computation_s">,
    Number<"overlap_s", "Both ran.">,
    Number<
        "overlap_pct",
        "Of the communication: close to 100 it costs nothing, close to 0 all of it is added to the step.">>;

/// One row per rank that has work on a device.
Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

}  // namespace headrace::analysis::device
