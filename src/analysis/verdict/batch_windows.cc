// A loader that delivers in windows: n batches at once, then nothing until the next n are made.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../read/numbers.h"
#include "diagnosis_steps.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

struct BatchWindows {
  std::size_t size = 0;     ///< batches of one
  std::size_t windows = 0;  ///< how many were seen
  double wait_s = 0;        ///< mean wait for one
  /// Whether the wait is as long whatever the loop takes for the batches before it: then nothing is made meanwhile.
  /// Empty where the steps are too even to tell. True for what runs in the loop itself.
  std::optional<bool> stands_still;
};

/// Two batches in turn are two workers; fewer windows show no period.
constexpr std::size_t kSmallest = 3;
constexpr std::size_t kFewest = 4;
/// Change of the wait per second that the loop took longer for the window before. Workers that go on meanwhile: -1.
constexpr double kGoesOn = -0.5;
constexpr double kMaxSlopeError = 0.25;
/// Indices of long waits: the fewest that make up nearly all waiting.
std::vector<std::size_t> long_waits(const std::vector<profile::StepSample>& steps) {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return steps[a].wait_s > steps[b].wait_s; });
  double all_s = 0;
  double time_s = 0;
  for (const profile::StepSample& step : steps) {
    all_s += step.wait_s;
    time_s += step.wait_s + step.compute_s;
  }
  if (all_s <= 0 || all_s < kHardly * time_s) return {};
  double sum_s = 0;
  std::size_t count = 0;
  while (count < order.size() && sum_s < kNearlyAll * all_s) sum_s += steps[order[count++]].wait_s;
  // One that is half as long as these is one of them.
  const double shortest_s = 0.5 * steps[order[count - 1]].wait_s;
  while (count < order.size() && steps[order[count]].wait_s > shortest_s) ++count;
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

/// The gap that nearly all have (the last one of an epoch may be shorter); 0: they differ.
std::size_t usual_gap(const std::vector<std::size_t>& places) {
  std::map<std::size_t, std::size_t> counts;
  for (std::size_t i = 1; i < places.size(); ++i) ++counts[places[i] - places[i - 1]];
  for (const auto& [gap, count] : counts) {
    if (static_cast<double>(count) >= kNearlyAll * static_cast<double>(places.size() - 1)) return gap;
  }
  return 0;
}

/// Whether as many workers as a window has batches are known, or none at all: workers that began together.
bool may_be_workers(const profile::Profile& profile, std::size_t size, bool in_loop) {
  if (const std::optional<Loader> loader = loader_of(profile); loader && loader->workers > 0) return true;
  const std::string helpers = setting(profile, kHelpers);
  const std::string number = std::to_string(size);
  if (helpers == number || setting(profile, kOwnWorkers).ends_with("=" + number)) return true;
  if (std::any_of(profile.operators.begin(), profile.operators.end(),
                  [size](const profile::OperatorProfile& op) {
                    return op.workers > 1 && static_cast<std::size_t>(op.workers) == size;
                  }))
    return true;
  return helpers.empty() && !in_loop;
}

/// The slope of a wait over the time that the loop took for the window before it, by least squares.
std::optional<bool> stands_still(const std::vector<profile::StepSample>& steps,
                                 const std::vector<std::size_t>& places, std::size_t size) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] - places[i - 1] != size) continue;
    double took_s = 0;
    for (std::size_t step = places[i - 1]; step < places[i]; ++step) took_s += steps[step].compute_s;
    points.emplace_back(took_s, steps[places[i]].wait_s);
  }
  const auto count = static_cast<double>(points.size());
  if (count < kFewest) return std::nullopt;
  double x = 0;
  double y = 0;
  for (const auto& [took_s, wait_s] : points) {
    x += took_s / count;
    y += wait_s / count;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (const auto& [took_s, wait_s] : points) {
    xx += (took_s - x) * (took_s - x);
    xy += (took_s - x) * (wait_s - y);
    yy += (wait_s - y) * (wait_s - y);
  }
  if (xx <= 0) return std::nullopt;
  const double slope = xy / xx;
  const double error = std::sqrt(std::max(0.0, yy - slope * xy) / (count - 2) / xx);
  if (error > kMaxSlopeError) return std::nullopt;
  return slope > kGoesOn;
}

std::string in_words(const BatchWindows& found) {
  const std::string size = std::to_string(found.size);
  return "batches come " + size + " at a time: the loop waits " + duration(found.wait_s) + ", then takes " +
         size + " with hardly a wait, " + std::to_string(found.windows) + " times in the last steps";
}

/// Windows of the last steps. Empty where waits come irregularly, or where the number of workers explains their rhythm:
/// workers that begin together also end together.
std::optional<BatchWindows> batch_windows(const Case& facts) {
  const std::vector<profile::StepSample>& steps = facts.profile.sink.sequence;
  const std::vector<std::size_t> places = long_waits(steps);
  if (places.size() < kFewest + 1) return std::nullopt;
  BatchWindows found;
  found.size = usual_gap(places);
  if (found.size < kSmallest) return std::nullopt;
  found.windows = places.size();
  for (const std::size_t place : places)
    found.wait_s += steps[place].wait_s / static_cast<double>(places.size());
  const SegmentDemand* segment = facts.candidate < 0 ? nullptr : facts.demand.of(facts.candidate);
  const bool in_loop = segment != nullptr && segment->in_sink && !facts.waits_for_unseen();
  found.stands_still = in_loop ? true : stands_still(steps, places, found.size);
  if (found.stands_still == false) return std::nullopt;
  if (!found.stands_still && may_be_workers(facts.profile, found.size, in_loop)) return std::nullopt;
  return found;
}

}  // namespace

void add_batch_windows(const Case& facts, Diagnosis& diagnosis) {
  if (diagnosis.kind == VerdictKind::not_input_bound) return;
  const std::optional<BatchWindows> found = batch_windows(facts);
  if (!found) return;
  const auto size = static_cast<double>(found->size);
  diagnosis.evidence.push_back(
      {Rule::detail, in_words(*found), {{"window", size}, {"window_wait_s", found->wait_s}}});
  const double at_best_s = std::max(facts.gate.own_compute_s, found->wait_s / size);
  Advice advice;
  advice.text = "keep the window full: " + std::to_string(found->size) + " batches are waited for together" +
                (found->stands_still ? ", and none is made while they are used" : "") +
                "; ask for one more whenever one is taken (submit the next item as one finishes, imap with a "
                "small chunk), or let a thread make the next window meanwhile" +
                (found->stands_still ? ": a step takes " + duration(at_best_s) + " at best instead of " +
                                           duration(facts.gate.step_s)
                                     : "; what that gains is unknown");
  const bool is_predicted = std::any_of(diagnosis.advice.begin(), diagnosis.advice.end(),
                                        [](const Advice& each) { return each.predicted_step_s.has_value(); });
  diagnosis.advice.insert(is_predicted ? diagnosis.advice.end() : diagnosis.advice.begin(),
                          std::move(advice));
}

}  // namespace headrace::analysis
