#include "headrace/analysis/step_trace.h"

#include <algorithm>

namespace headrace::analysis {

namespace {

using profile::MarkedSteps;
using profile::SinkProfile;
using profile::StepSample;

StepTime as_the_loader_sees(const StepSample& step) {
  return {step.wait_s, step.compute_s, std::nullopt, step.wait_s + step.compute_s};
}

StepTime as_hooks_see(const StepSample& step) {
  StepTime time;
  time.total_s = step.wait_s + step.compute_s;
  if (!step.before_forward_s) return time;
  time.iteration_gap_s = step.wait_s + *step.before_forward_s;
  time.tail_s = step.tail_s;
  time.forward_backward_s = std::max(0.0, step.compute_s - *step.before_forward_s - step.tail_s.value_or(0));
  return time;
}

StepTrace from_the_loader(const SinkProfile& sink) {
  StepTrace trace;
  trace.source = "loader";
  trace.unknown =
      "the loader sees the calls for batches only: what lies between a batch and forward, and the tail, are "
      "part of forward and backward";
  trace.steps = trace.of_steps = sink.getnext_wait.count;
  trace.average = {std::max(0.0, sink.step_s - sink.compute_s), sink.compute_s, std::nullopt, sink.step_s};
  return trace;
}

StepTrace from_hooks(const MarkedSteps& marked) {
  StepTrace trace;
  trace.source = "hooks";
  trace.unknown =
      "hooks see the host's time: an asynchronous device may still work on a part when the host has left it";
  if (marked.tail_steps < marked.steps) {
    trace.unknown += "; the end of backward was not seen in " +
                     std::to_string(marked.steps - marked.tail_steps) + " of " +
                     std::to_string(marked.steps) + " steps, whose tail is part of forward and backward";
  }
  trace.steps = marked.steps;
  trace.of_steps = marked.of_steps;
  trace.average.iteration_gap_s = marked.iteration_gap_s;
  trace.average.forward_backward_s = marked.forward_backward_s;
  if (marked.tail_steps > 0) trace.average.tail_s = marked.tail_s;
  trace.average.total_s =
      marked.iteration_gap_s + marked.forward_backward_s + trace.average.tail_s.value_or(0);
  return trace;
}

}  // namespace

StepTrace step_trace(const profile::Profile& profile) {
  const SinkProfile& sink = profile.sink;
  const bool hooked = sink.marked && sink.marked->steps > 0;
  StepTrace trace = hooked ? from_hooks(*sink.marked) : from_the_loader(sink);
  trace.per_step.reserve(sink.sequence.size());
  for (const StepSample& step : sink.sequence)
    trace.per_step.push_back(hooked ? as_hooks_see(step) : as_the_loader_sees(step));
  return trace;
}

}  // namespace headrace::analysis
