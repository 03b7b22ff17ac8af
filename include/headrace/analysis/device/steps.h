// The training steps of a trace and what the device did for each.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/rows.h"

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

}  // namespace headrace::analysis::device
