// The training steps of a trace and what the device did for each.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

/// One row per `ProfilerStep#N`, in the order of time:
///
///     rank step start_ns duration_s complete works device_start_ns device_span_s device_busy_s computation_s
///     communication_s memory_s
///
/// `duration_s` is the step on the host. The rest is the device work that was launched in it, whenever it
/// ran: how many pieces, when the first began (the start of the step if there is none), from then to the
/// last end, and the time in which anything, or something of a kind, ran. `complete` is 0 for a last step
/// that is cut off (see `last_step_is_cut_off`), which other tables leave out; `start_ns` is on the clock of
/// the file.
Table steps(std::span<const trace::Trace> traces);

}  // namespace headrace::analysis::device
