// The training steps of a trace: the device's work for each, the parts of its time, and its time by the roles
// of PyTorch's TensorBoard plugin.
#pragma once

#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

using StepsColumns =
    ColumnList<Integer<"rank">, Integer<"step">, Integer<"start_ns">, Number<"duration_s", "On the host.">,
               Integer<"complete", "0: a last step that is cut off; other tables leave it out.">,
               Integer<"works", "Pieces of device work that were launched in it; what follows is theirs.">,
               Integer<"device_start_ns", "When the first began; the start of the step if there is none.">,
               Number<"device_span_s", "From the first start to the last end.">,
               Number<"device_busy_s", "Anything ran.">, Number<"computation_s">, Number<"communication_s">,
               Number<"memory_s">>;

/// One row per `ProfilerStep#N`, in the order of time. A step has the device work that was launched in it,
/// whenever that ran; `last_step_is_cut_off` says when a step is not complete.
Table steps(std::span<const trace::Trace> traces);

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
/// there and the last end of what it launched. Of two such steps it belongs to the one that launched it.
/// Work without a launch belongs to no step if the file has launches, else to the later of the
/// two. NaN: there is no such work in the step.
Table step_time(std::span<const trace::Trace> traces);

using StepBreakdownColumns =
    ColumnList<Integer<"rank">, Integer<"step">, Number<"kernel_s">, Number<"memcpy_s">, Number<"memset_s">,
               Number<"communication_s">, Number<"runtime_s">,
               Number<"data_loader_s",
                      "The host waited for a batch, and neither the device nor its runtime did anything.">,
               Number<"cpu_s">, Number<"other_s">, Number<"total_s">>;
using StepBreakdownAverageColumns =
    ColumnList<Integer<"rank">, Text<"role">, Number<"mean_s">, Number<"share_pct", "Of the steps.">>;

struct StepBreakdown {
  /// One row per step. Each moment of a step counts for the first of the roles that is active then, in the
  /// order of the columns. The roles sum to the step.
  Table steps;
  /// The means over the steps.
  Table average;
};

/// Roles (source of the definition: the plugin's event parser and its overall view): kernels; copies; fills;
/// communication (calls of `nccl:` and `gloo:` collectives, and kernels that they launched); calls of the
/// device's runtime (not of its driver); `enumerate(DataLoader)#...__next__`; other operators and
/// annotations; nothing of all that.
///
/// A step begins where the work of the one before ended and ends with its own work on the device, so that
/// what the device still has to do is not the next step's; one that ended before the one before it has no
/// time. Steps at the end whose work on the device is missing are left out. Without a ProfilerStep the whole
/// trace is one step 0; without work on a device steps are those of the host, also where they overlap.
StepBreakdown step_breakdown(std::span<const trace::Trace> traces);

}  // namespace headrace::analysis::device
