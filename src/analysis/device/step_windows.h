// When the device was at which step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// From the first event of host or device to the last; nothing if there is neither.
std::optional<Interval> recorded_time(const trace::Trace& trace);
/// From the first launch of work that is recorded, or the first work, to the last end of work: what lies before and
/// behind is start-up and the program's end, unless it is short. Of a trace without work all that was recorded.
std::optional<Interval> worked_time(const trace::Trace& trace);

/// The time of one step: from the end of the step before it to the last end of what it did.
struct StepWindow {
  std::int64_t number = 0;
  /// Index of the step in the trace.
  std::int32_t step = 0;
  Interval time;
};

/// Work of one step, on the device or, where the trace has none, an operator on the host.
struct StepPiece {
  std::int32_t step = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  trace::Row row = 0;
  /// The launch, or the operator itself.
  trace::Row host = 0;
  /// Neither moves data nor gradients.
  bool computes = false;
};

/// By step. Work outside of steps is left out.
std::vector<StepPiece> step_pieces(const trace::Trace& trace);

/// The steps that are not cut off, in the order of time. The first begins when it did on the host. They
/// follow each other without a gap; a step that ended before the one before it has no time.
std::vector<StepWindow> step_windows(const trace::Trace& trace, const std::vector<StepPiece>& pieces);

}  // namespace headrace::analysis::device
