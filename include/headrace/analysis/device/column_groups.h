// Columns that several tables have in common.
#pragma once

#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

/// All devices of a rank are one, unless a table was asked for a row per device.
using RankColumns = ColumnList<Integer<"rank">, Optional<Integer<"device">>>;

using StreamColumns = ColumnList<Integer<"rank">, Integer<"device">, Integer<"stream">>;

/// Durations of the calls of one name; `call_figures` makes the values.
using CallColumns =
    ColumnList<Integer<"calls">, Number<"total_s">, Number<"total_pct">, Number<"mean_s">,
               Number<"std_s", "Of the sample (n - 1); NaN for one call.">, Number<"min_s">, Number<"max_s">>;

/// Parts of a step's time on the device; step_time.h has the formulas.
using StepTimeColumns =
    ColumnList<Number<"computing_s">,
               Number<"communication_not_overlapped_s", "Communication while nothing computed.">,
               Number<"overlapped_s", "Communication while something computed.">, Number<"communication_s">,
               Number<"free_s", "Neither computation nor communication; copies alone count as free.">,
               Number<"stage_s", "From the first start to the last end, without the bubble.">,
               Number<"bubble_s", "Receives of a pipeline.">, Number<"not_overlapped_exclude_receive_s">,
               Number<"preparing_s",
                      "From its start on the host, or the end of the earlier steps' work, to its first; "
                      "input waits are in it.">>;

/// Operation of a communication library that a row is about.
using OperationColumns = ColumnList<Integer<"rank">, Text<"step">, Text<"type", "collective or p2p.">,
                                    Text<"operation">, Text<"group">>;

}  // namespace headrace::analysis::device
