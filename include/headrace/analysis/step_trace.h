// The steps of the training loop as its loader sees them: waiting for a batch, then everything until the next
// call.
//
// How to read it: iteration_gap is what the input costs; forward_backward is the step's own time. The loader
// alone cannot tell the tail (update, gradient communication) from the rest: tail_s is empty and contained in
// forward_backward_s. Hooks on the model (hr.trace_steps) or a device trace split it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct StepTime {
  double iteration_gap_s = 0;
  double forward_backward_s = 0;
  std::optional<double> tail_s;
  double total_s = 0;
};

struct StepTrace {
  std::string source;              ///< what the points come from: "loader"
  StepTime average;                ///< over all steady steps
  std::vector<StepTime> per_step;  ///< the recorded ones, newest last
};

/// From the sink's figures. Thread-safe; never fails.
StepTrace step_trace(const profile::Profile& profile);

}  // namespace headrace::analysis
