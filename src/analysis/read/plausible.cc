#include "headrace/analysis/read/plausible.h"

#include <algorithm>
#include <vector>

#include "headrace/analysis/words.h"
#include "headrace/profile/profile_json.h"

namespace headrace::analysis {
namespace {

/// A window list longer than any recorder makes would cost memory when it is padded.
constexpr std::size_t kMaxWindows = 4096;
/// No loop takes a batch in less.
constexpr double kShortestStep_s = 1e-8;
/// Figures that are read while a loop runs are of slightly different moments.
constexpr double kApart = 2;
constexpr double kApart_s = 1;

/// A figure and the most that the length of the run allows for it.
struct Limit {
  std::string name;
  double seconds;
  double most_s;
};

/// Some of the steps were cut, and some of these have a tail.
template <class Steps>
void keep_steps_apart(Steps& steps) {
  steps.steps = std::min(steps.steps, steps.of_steps);
  steps.tail_steps = std::min(steps.tail_steps, steps.steps);
}

template <class Step>
void keep_overlap_inside(Step& step) {
  step.communication_overlap_s = std::min(step.communication_overlap_s, step.communication_s);
}

}  // namespace

profile::Profile plausible(const profile::Profile& recorded) {
  profile::Profile profile = recorded;
  if (profile.windows.size() > kMaxWindows) profile.windows.resize(kMaxWindows);
  profile::bound_figures(profile);
  profile.sink.starved_share = std::min(profile.sink.starved_share, profile.sink.wait_share);
  for (profile::Window& window : profile.windows) {
    window.end_s = std::max(window.end_s, window.start_s);
    window.starved_s = std::min(window.starved_s, window.wait_s);
    window.operators.resize(profile.operators.size());
    window.queues.resize(profile.queues.size());
  }
  if (profile.sink.marked) keep_steps_apart(*profile.sink.marked);
  // A quota stops the run whatever others do on cores that it may not use.
  if (is_throttled(profile.host)) profile.host.foreign_cpu_share = profile.host.foreign_contention_share = 0;
  if (profile.device) {
    profile::DeviceProfile& device = *profile.device;
    device.idle_s = std::min(device.idle_s, device.window_s);
    if (device.steps) {
      keep_steps_apart(*device.steps);
      keep_overlap_inside(*device.steps);
      for (profile::DeviceStep& step : device.steps->sequence) keep_overlap_inside(step);
    }
  }
  return profile;
}

std::string contradiction(const profile::Profile& profile) {
  const double lasted_s = profile.elapsed_s + profile.startup.first_batch_s + profile.startup.later_epochs_s;
  const double most_s = kApart * lasted_s + kApart_s;
  const profile::SinkProfile& sink = profile.sink;
  const auto steps = static_cast<double>(sink.getnext_wait.count);
  std::vector<Limit> limits{{"the sum of all steps", sink.step_s * steps, most_s},
                            {"the training step's compute", sink.compute_s, most_s},
                            {"the device's work on a step", sink.device_span_s.value_or(0), most_s},
                            {"the longest wait", sink.getnext_wait.max_s, most_s},
                            {"the shortest possible time for all steps", kShortestStep_s * steps, most_s}};
  for (const profile::OperatorProfile& op : profile.operators) {
    const double workers = std::max<double>(op.workers, static_cast<double>(op.per_worker.size()));
    limits.push_back({op.name + ".demand_s", op.demand_s, most_s});
    limits.push_back({op.name + ".busy_s", op.busy_s, workers * most_s});
  }
  Limit waits{"the sum of the windows' waits", 0, most_s};
  Limit computes{"the sum of the windows' computes", 0, most_s};
  for (const profile::Window& window : profile.windows) {
    waits.seconds += window.wait_s;
    computes.seconds += window.compute_s;
  }
  limits.push_back(waits);
  limits.push_back(computes);
  for (const Limit& limit : limits) {
    if (limit.seconds <= limit.most_s) continue;
    return limit.name + " is " + duration(limit.seconds) + " in a run of " + duration(lasted_s);
  }
  return "";
}

}  // namespace headrace::analysis
