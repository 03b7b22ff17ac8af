#include "long_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "../read/numbers.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

double median_compute_s(const std::vector<profile::StepSample>& steps) {
  std::vector<double> times;
  for (const profile::StepSample& step : steps) times.push_back(step.compute_s);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// No gap between two of them differs from the usual one by more than that part of it, or a step.
bool evenly_apart(const std::vector<std::size_t>& places, double apart, const PauseThresholds& thresholds) {
  if (static_cast<double>(places.size()) < thresholds.fewest) return false;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const double gap = static_cast<double>(places[i] - places[i - 1]);
    if (std::abs(gap - apart) > std::max(1.0, thresholds.uneven * apart)) return false;
  }
  return true;
}

/// "__float__ (train.py:37)": functions that return once the device has made their result.
bool reads_device(std::string_view where) {
  constexpr std::array<std::string_view, 8> kReads{"__float__",  "__int__",    "__bool__",
                                                   "__array__",  "item",       "block_until_ready",
                                                   "device_get", "synchronize"};
  return std::find(kReads.begin(), kReads.end(), where.substr(0, where.find(' '))) != kReads.end();
}

}  // namespace

std::optional<LongSteps> long_steps(const profile::Profile& profile, const PauseThresholds& thresholds) {
  const std::vector<profile::StepSample>& steps = profile.sink.sequence;
  if (steps.empty()) return std::nullopt;
  LongSteps found;
  found.of_steps = steps.size();
  found.usual_s = median_compute_s(steps);
  double all_s = 0;
  double long_s = 0;
  std::vector<std::size_t> places;  // where they begin: several on end are one pause
  std::size_t last = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all_s += steps[i].compute_s + steps[i].wait_s;
    if (found.usual_s <= 0 || steps[i].compute_s < thresholds.times_as_long * found.usual_s) continue;
    long_s += steps[i].compute_s;
    ++found.count;
    if (places.empty() || i > last + 1) places.push_back(i);
    last = i;
  }
  const auto count = static_cast<double>(found.count);
  if (places.empty() || long_s < thresholds.of_time * all_s ||
      count > thresholds.most_steps * static_cast<double>(steps.size()))
    return std::nullopt;
  found.each_s = long_s / count;
  found.share = long_s / all_s;
  found.steps_apart = static_cast<double>(places.back() - places.front()) /
                      std::max(1.0, static_cast<double>(places.size()) - 1);
  found.periodic = evenly_apart(places, found.steps_apart, thresholds);
  found.without_s = (all_s - long_s + count * found.usual_s) / static_cast<double>(steps.size());
  found.in_collector = ratio(profile.sink.gc_s, profile.sink.step_s) >= kMostOf * found.share;
  const std::string where = setting(profile, kPausesIn);
  found.reads_device = reads_device(where);
  found.where = found.in_collector ? "Python's garbage collector" : where;
  return found;
}

std::optional<profile::Profile> with_device_behind(const profile::Profile& profile,
                                                   const PauseThresholds& thresholds) {
  if (profile.sink.device_span_s || !reads_device(setting(profile, kPausesIn))) return std::nullopt;
  const std::optional<LongSteps> found = long_steps(profile, thresholds);
  if (!found) return std::nullopt;
  profile::Profile behind = profile;
  profile::SinkProfile& sink = behind.sink;
  double idle_s = 0;
  for (std::size_t i = 1; i < sink.sequence.size(); ++i) {
    if (sink.sequence[i - 1].compute_s >= thresholds.times_as_long * found->usual_s)
      idle_s += sink.sequence[i].wait_s;
  }
  sink.device_span_s = sink.step_s - idle_s / static_cast<double>(found->of_steps);
  sink.device_host_s = found->usual_s;
  sink.device_steps = found->of_steps;
  return behind;
}

std::string growing_steps(const profile::Profile& profile) {
  constexpr std::size_t kParts = 4;
  constexpr double kGrows = 2;  // less may be the data
  const std::size_t length = profile.windows.size() / kParts;
  if (length == 0) return "";
  std::vector<double> means_s;
  for (std::size_t part = 0; part < kParts; ++part) {
    double compute_s = 0;
    double steps = 0;
    for (std::size_t i = part * length; i < (part + 1) * length; ++i) {
      compute_s += profile.windows[i].compute_s;
      steps += static_cast<double>(profile.windows[i].steps);
    }
    means_s.push_back(ratio(compute_s, steps));
  }
  const bool grows = std::adjacent_find(means_s.begin(), means_s.end(), [](double before, double after) {
                       return after < kWorthIt * before;
                     }) == means_s.end();
  if (!grows || means_s.front() <= 0 || means_s.back() < kGrows * means_s.front()) return "";
  const std::string where = setting(profile, kPausesIn);
  return "the training step is the limit, and it grows from " + duration(means_s.front()) + " to " +
         duration(means_s.back()) +
         (where.empty() ? ": look for what it adds to in every step (a list, a graph that a loss keeps)"
                        : ", in " + where);
}

std::string in_words(const LongSteps& found) {
  const std::string apart = as_written(std::round(found.steps_apart));
  std::string often;
  if (found.steps_apart > 0 && found.count > 2)
    often = ", one in " + std::string(found.periodic ? "" : "about ") + apart + " steps";
  return counted(static_cast<double>(found.count), "step") + " of " + std::to_string(found.of_steps) +
         " took " + duration(found.each_s) + " in the loop itself, the usual one " + duration(found.usual_s) +
         ": " + percent(found.share) + " of the time" + often +
         (found.where.empty() ? "; look for logging, a checkpoint or an evaluation in the loop"
                              : "; the loop was in " + found.where);
}

std::map<std::string, double> figures_of(const LongSteps& found) {
  return {{"long_step_s", found.each_s},
          {"usual_step_s", found.usual_s},
          {"long_share", found.share},
          {"steps_between", found.steps_apart},
          {"step_without_s", found.without_s}};
}

}  // namespace headrace::analysis
