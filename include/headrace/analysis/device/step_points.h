// Steps of a device trace cut into waiting for data, forward and backward, and what comes behind.
#pragma once

#include <span>
#include <string>

#include "headrace/analysis/table.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct StepPointsOptions {
  /// Forward begins with the first work whose name, or the name of a range around its launch, contains this.
  std::string fp_point;
  /// Backward ends with the last such work.
  std::string bp_point;
};

struct StepPoints {
  /// One row per step that is not cut off:
  ///
  ///     rank step start_ns fp_ns bp_ns end_ns iteration_gap_s forward_backward_s tail_s total_s
  ///     communication_s communication_overlap_s
  ///
  ///     start  the end of the step before; of the first, its start on the host
  ///     fp     the first computation that is neither loading data nor the optimizer's
  ///     bp     the last end of a computation of the backward pass: of what autograd launched, else of what
  ///            was launched before the optimizer's step
  ///     end    the last end of anything that was launched in the step
  ///
  ///     iteration_gap = fp - start   forward_backward = bp - fp   tail = end - bp   total = end - start
  ///
  /// The points are on the device, in the clock of the file; where the trace has no device work they are
  /// those of operators on the host, and a note says so. A point is never before the one to its left, so
  /// the three parts sum to the total. If backward is unknown, `tail_s` has no figure, `bp_ns` is -1
  /// and the tail is part of forward_backward; a step without any computation has a total only.
  ///
  /// `communication_s` is the time of the step's collectives, `communication_overlap_s` the part of it under
  /// computation. How to read it: a long gap is the input's, a long tail gradient communication or the
  /// update.
  Table steps;
  /// The mean of each rank's steps: rank steps iteration_gap_s forward_backward_s tail_s total_s
  /// communication_s communication_overlap_s. A figure that a step does not have is not part of its mean.
  Table average;
};

StepPoints step_points(std::span<const trace::Trace> traces, const StepPointsOptions& options = {});

}  // namespace headrace::analysis::device
