#include "headrace/analysis/step_trace.h"

#include <algorithm>

namespace headrace::analysis {

namespace {

using profile::MarkedSteps;
using profile::SinkProfile;
using profile::StepSample;

StepTime as_the_loader_sees(const StepSample& step) {
  StepTime time;
  time.iteration_gap_s = step.wait_s;
  time.forward_backward_s = step.compute_s;
  time.total_s = step.wait_s + step.compute_s;
  return time;
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
  trace.average.iteration_gap_s = std::max(0.0, sink.step_s - sink.compute_s);
  trace.average.forward_backward_s = sink.compute_s;
  trace.average.total_s = sink.step_s;
  for (const StepSample& step : sink.sequence) trace.per_step.push_back(as_the_loader_sees(step));
  return trace;
}

/// "; the end of backward was not <how> in 3 of 9 steps, whose ...", or nothing if it was in all.
std::string where_the_tail_is_unknown(const char* how, std::uint64_t tails, std::uint64_t steps) {
  if (tails >= steps) return "";
  return std::string("; the end of backward was not ") + how + " in " + std::to_string(steps - tails) +
         " of " + std::to_string(steps) + " steps, whose tail is part of forward and backward";
}

StepTrace from_hooks(const SinkProfile& sink) {
  const MarkedSteps& marked = *sink.marked;
  StepTrace trace;
  trace.source = "hooks";
  trace.unknown =
      "hooks see the host's time: an asynchronous device may still work on a part when the host has left it";
  trace.unknown += where_the_tail_is_unknown("seen", marked.tail_steps, marked.steps);
  trace.steps = marked.steps;
  trace.of_steps = marked.of_steps;
  trace.average.iteration_gap_s = marked.iteration_gap_s;
  trace.average.forward_backward_s = marked.forward_backward_s;
  if (marked.tail_steps > 0) trace.average.tail_s = marked.tail_s;
  trace.average.total_s =
      marked.iteration_gap_s + marked.forward_backward_s + trace.average.tail_s.value_or(0);
  for (const StepSample& step : sink.sequence) trace.per_step.push_back(as_hooks_see(step));
  return trace;
}

StepTime as_the_device_saw(const profile::DeviceStep& step) {
  StepTime time;
  time.iteration_gap_s = step.iteration_gap_s;
  time.forward_backward_s = step.forward_backward_s;
  time.tail_s = step.tail_s;
  time.total_s = step.total_s;
  time.step = step.step;
  time.communication_s = step.communication_s;
  if (step.communication_overlap_s >= 0) time.communication_overlap_s = step.communication_overlap_s;
  return time;
}

StepTrace from_device(const profile::DeviceSteps& steps) {
  StepTrace trace;
  trace.source = "device_trace";
  trace.unknown =
      "a device trace sees its own steps only, and what the device did, not why the host was late";
  if (steps.steps < steps.of_steps) {
    trace.unknown += "; in " + std::to_string(steps.of_steps - steps.steps) + " of " +
                     std::to_string(steps.of_steps) + " steps it does not tell where forward begins";
  }
  trace.unknown += where_the_tail_is_unknown("found", steps.tail_steps, steps.steps);
  trace.steps = steps.steps;
  trace.of_steps = steps.of_steps;
  trace.average.iteration_gap_s = steps.iteration_gap_s;
  trace.average.forward_backward_s = steps.forward_backward_s;
  if (steps.tail_steps > 0) trace.average.tail_s = steps.tail_s;
  trace.average.total_s = steps.iteration_gap_s + steps.forward_backward_s + trace.average.tail_s.value_or(0);
  trace.average.communication_s = steps.communication_s;
  if (steps.communication_overlap_s >= 0)
    trace.average.communication_overlap_s = steps.communication_overlap_s;
  for (const profile::DeviceStep& step : steps.sequence) trace.per_step.push_back(as_the_device_saw(step));
  return trace;
}

/// Why the trace that is there is not the source, as the beginning of a sentence.
std::string passed_over(const profile::DeviceProfile& device) {
  std::string why = "the device trace tells no parts";
  if (device.steps && device.steps->steps > 0) why = "the device trace does not tell where backward ends";
  std::string notes;
  constexpr std::size_t kMaxNotes = 3;
  for (std::size_t i = 0; i < std::min(kMaxNotes, device.step_notes.size()); ++i)
    notes += (i == 0 ? " (" : "; ") + device.step_notes[i];
  return why + notes + (notes.empty() ? "; " : "); ");
}

}  // namespace

StepTrace step_trace(const profile::Profile& profile) {
  const SinkProfile& sink = profile.sink;
  const bool hooked = sink.marked && sink.marked->steps > 0;
  const bool hooks_know_the_tail = hooked && sink.marked->tail_steps > 0;
  if (profile.device && profile.device->steps) {
    const profile::DeviceSteps& steps = *profile.device->steps;
    if (steps.tail_steps > 0 || (steps.steps > 0 && !hooks_know_the_tail)) return from_device(steps);
  }
  StepTrace trace = hooked ? from_hooks(sink) : from_the_loader(sink);
  if (profile.device) trace.unknown = passed_over(*profile.device) + trace.unknown;
  return trace;
}

}  // namespace headrace::analysis
