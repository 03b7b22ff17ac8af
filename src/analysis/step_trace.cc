#include "headrace/analysis/step_trace.h"

#include <algorithm>

namespace headrace::analysis {

StepTrace step_trace(const profile::Profile& profile) {
  const profile::SinkProfile& sink = profile.sink;
  StepTrace trace;
  trace.source = "loader";
  trace.average.iteration_gap_s = std::max(0.0, sink.step_s - sink.compute_s);
  trace.average.forward_backward_s = sink.compute_s;
  trace.average.total_s = sink.step_s;
  trace.per_step.reserve(sink.sequence.size());
  for (const profile::StepSample& step : sink.sequence) {
    trace.per_step.push_back({step.wait_s, step.compute_s, std::nullopt, step.wait_s + step.compute_s});
  }
  return trace;
}

}  // namespace headrace::analysis
