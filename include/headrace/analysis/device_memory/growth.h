// Places that hold more memory from step to step.
#pragma once

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

using GrowthColumns = ColumnList<
    Integer<"device">, Text<"where", "The innermost function outside of PyTorch, or \"backward\".">,
    Integer<"growth_bytes", "Live at the end of the last step less at the end of the first.">,
    Number<"step_growth_bytes", "By step.">,
    Integer<"grew_in", "Steps in which it grew; in all: a leak, in one: a cache or an optimizer's state.">,
    Integer<"steps", "Steps that could grow: one less than are recorded.">, Integer<"first_bytes">,
    Integer<"last_bytes">, Text<"file">>;

/// One row per device and place that holds more in the end, the largest growth first.
///
/// Live bytes are compared at the ends of `ProfilerStep#N`, which the snapshot has if the program ran under
/// PyTorch's profiler. With fewer than two ends in the recording, it is the least that a place held in each third of
/// the events; a note says which.
Table growth(const memory::Snapshot& snapshot);

}  // namespace headrace::analysis::device_memory
