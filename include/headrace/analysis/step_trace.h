// The steps of the training loop, cut into gap, forward and backward, and tail.
//
// One definition for every source (live hooks, the loader alone, a device trace: device/step_points.h). A
// step runs from one GetNext call to the next.
//
//     iteration gap         until forward begins: the GetNext wait, and what lies between batch and forward
//     forward and backward  until backward ends
//     tail                  the rest: gradient communication that nothing hid, update, logging
//
// How to read it: a long gap is the input's (and the copy to the device), a long tail gradient communication
// or the update. Time that another wrapped loop took within a step is in none of the parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// A part that the source does not know is empty, and the one to its left contains it.
struct StepTime {
  std::optional<double> iteration_gap_s;
  std::optional<double> forward_backward_s;
  std::optional<double> tail_s;
  double total_s = 0;
  // From device traces only.
  std::optional<std::int64_t> step;               ///< the profiler's number; none of the average
  std::optional<double> communication_s;          ///< in which a collective ran
  std::optional<double> communication_overlap_s;  ///< of that: under computation
};

struct StepTrace {
  /// Source of the points. "device_trace": what the device ran, from a trace that was laid beside the
  /// run. "hooks": marks that hooks on the model (hr.trace_steps) or `with hr.step()` set in the host's
  /// program. "loader": the GetNext calls alone; forward and backward is then all that lies between two of
  /// them.
  std::string source;
  std::string unknown;         ///< what this source cannot know, in a sentence
  std::uint64_t steps = 0;     ///< that the average is over
  std::uint64_t of_steps = 0;  ///< of so many: with a steady wait, or whole in the trace
  StepTime average;
  /// The recorded ones, newest last. A step that hooks did not mark, or in which a device computed nothing,
  /// has a total only.
  std::vector<StepTime> per_step;
};

/// The device's trace where there is one and it tells a step's points, else hooks where they marked a step,
/// else the loader; `unknown` says why a trace was passed over. A trace that does not tell where backward
/// ends is passed over where hooks did. Thread-safe; never fails.
StepTrace step_trace(const profile::Profile& profile);

}  // namespace headrace::analysis
