// Computing, communication, both and neither: what each step's time on the device was made of.
#pragma once

#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

using StepTimeTableColumns = ColumnList<Integer<"rank">, Integer<"step">, StepTimeColumns>;

/// One row per rank and step; a trace without steps has one row with step -1. The columns of the Ascend
/// profiler's `step_trace_time.csv`, for any device.
///
///     computing = |merge(computation)|    communication = |merge(communication)|
///     communication_not_overlapped = |merge(both)| - computing
///     overlapped = communication - communication_not_overlapped
///     free = (last end - first start) - |merge(both)|           copies alone count as free
///     bubble = sum of the receives of a pipeline (`hcom_receive...`)
///     stage = (last end - first start) - bubble
///     not_overlapped_exclude_receive = communication_not_overlapped - bubble
///     preparing = first start - the later of the step's start on the host and the last end of the steps
///                 before, less what the device did for no step; waiting for the input is in it
///
/// So computing + communication_not_overlapped + free = stage + bubble, and `preparing` is beside that sum.
/// If the file has the profiler's own sums (rows "Overlap Analysis"), the first five are those: they are
/// exact where durations in the file are rounded.
///
/// Work belongs to the step whose time it began in: from the step's start on the host to the later of its end
/// there and the last end of what it launched. Of two such steps it belongs to the one that launched it. Where
/// the file has launches, work without one belongs to no step; where it has none, to the later of the two. NaN:
/// there is no such work in the step.
Table step_time(std::span<const trace::Trace> traces);

}  // namespace headrace::analysis::device
