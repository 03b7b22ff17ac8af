// Steps of a device trace cut into waiting for data, forward and backward, and what comes behind.
#pragma once

#include <span>
#include <string>

#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct StepPointsOptions {
  /// Forward begins with the first work whose name, or the name of a range around its launch, contains this.
  std::string fp_point;
  /// Backward ends with the last such work.
  std::string bp_point;
};

using StepPartColumns =
    ColumnList<Number<"iteration_gap_s", "From start to fp: a long one is the input's.">,
               Number<"forward_backward_s", "From fp to bp.">,
               Number<"tail_s", "From bp to end: a long one is gradient communication or the update.">,
               Number<"total_s">, Number<"communication_s", "The step's collectives ran.">,
               Number<"communication_overlap_s", "The part of it under computation.">>;
using StepPointsColumns =
    ColumnList<Integer<"rank">, Integer<"step">, Integer<"start_ns", "End of the step before.">,
               Integer<"fp_ns", "First computation of the model; -1: there is none.">,
               Integer<"bp_ns", "Last end of a computation of the backward pass; -1: unknown.">,
               Integer<"end_ns", "Last end of anything that was launched in the step.">, StepPartColumns>;
using StepPointsAverageColumns = ColumnList<Integer<"rank">, Integer<"steps">, StepPartColumns>;

struct StepPoints {
  /// One row per step that is not cut off.
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
  Table steps;
  /// The mean of each rank's steps. A figure that a step does not have is not part of its mean.
  Table average;
};

StepPoints step_points(std::span<const trace::Trace> traces, const StepPointsOptions& options = {});

}  // namespace headrace::analysis::device
