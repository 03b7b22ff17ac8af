#include "headrace/analysis/comparison/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "../read/numbers.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/words.h"
#include "spread.h"

namespace headrace::analysis {
namespace {

using Profiles = std::span<const profile::Profile>;
/// One figure of a run.
using Reads = std::function<Mean(const profile::Profile&)>;

constexpr double kWorthAWord = 0.02;
/// An interval from less than a tenth of the ratio to more than ten times it: logarithm of ten.
constexpr double kTellsNothing = 2.3;
/// Foreign load from which on a difference may be the neighbours'.
constexpr double kNeighbours = 0.05;
/// Steps in one of the stretches that the recorded sequence of a run without windows is cut into.
constexpr std::size_t kStepsOfStretch = 4;

enum class Part { kStep, kWait, kCompute };

double of_part(Part part, double wait_s, double compute_s) {
  if (part == Part::kWait) return wait_s;
  return part == Part::kCompute ? compute_s : wait_s + compute_s;
}

std::vector<Stretch> stretches_of(const profile::Profile& profile, Part part) {
  std::vector<Stretch> stretches;
  for (const profile::Window& window : profile.windows) {
    const double s = of_part(part, window.wait_s, window.compute_s);
    stretches.push_back({s, static_cast<double>(window.steps)});
  }
  if (!stretches.empty()) return stretches;
  for (std::size_t i = 0; i < profile.sink.sequence.size(); ++i) {
    if (i % kStepsOfStretch == 0) stretches.emplace_back();
    const profile::StepSample& step = profile.sink.sequence[i];
    stretches.back().seconds += of_part(part, step.wait_s, step.compute_s);
    stretches.back().steps += 1;
  }
  return stretches;
}

/// The share of a step in which somebody computes.
double computes(const profile::Profile& profile) {
  return ratio(profile.sink.compute_cpu_s.value_or(0) + input_cpu_s(profile), profile.sink.step_s);
}

Mean demand_of(const profile::Profile& profile, std::size_t place) {
  std::vector<Stretch> stretches;
  for (const profile::Window& window : profile.windows) {
    if (place >= window.operators.size() || window.operators[place].demand_s < 0) continue;
    // Work on batches that a later window delivers is in that window's steps: long stretches even that out.
    const double busy_s = window.operators[place].busy_share * (window.end_s - window.start_s);
    stretches.push_back({busy_s, static_cast<double>(window.steps)});
  }
  const profile::OperatorProfile& op = profile.operators[place];
  return mean_of_run(stretches, op.cpu_s ? ratio(*op.cpu_s, op.busy_s) : 1);
}

Mean mean_of(Profiles runs, const Reads& reads) {
  std::vector<Mean> means;
  for (const profile::Profile& run : runs) means.push_back(reads(run));
  return mean_of_runs(means);
}

ComparedFigure figure_of(const Mean& a, const Mean& b) {
  ComparedFigure figure{.a = a.value, .b = b.value};
  figure.low = 0;
  figure.high = std::numeric_limits<double>::infinity();
  if (a.value > 0 && b.value > 0) figure.ratio = b.value / a.value;
  if (!a.known() || !b.known()) return figure;
  const double variance = a.spread * a.spread + b.spread * b.spread;
  // Welch and Satterthwaite: the degrees of freedom of a sum of two spreads.
  const auto fourth = [](const Mean& mean) { return std::pow(mean.spread, 4) / mean.degrees; };
  const double degrees = variance > 0 ? variance * variance / (fourth(a) + fourth(b)) : a.degrees;
  const double off = t_of_99_percent(degrees) * std::sqrt(variance);
  if (off > kTellsNothing) return figure;
  figure.low = figure.ratio * std::exp(-off);
  figure.high = figure.ratio * std::exp(off);
  figure.changed = (figure.low > 1 || figure.high < 1) && std::abs(figure.ratio - 1) >= kWorthAWord;
  return figure;
}

ComparedFigure compared(Profiles a, Profiles b, const Reads& reads) {
  return figure_of(mean_of(a, reads), mean_of(b, reads));
}

std::optional<std::size_t> place_of(const profile::Profile& profile, const std::string& name) {
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].name == name) return i;
  }
  return std::nullopt;
}

bool all_time_it(Profiles runs, const std::string& name) {
  return std::all_of(runs.begin(), runs.end(), [&](const profile::Profile& run) {
    const auto place = place_of(run, name);
    return place && run.operators[*place].demand_s > 0;
  });
}

double effect_s(const ComparedOperator& op) { return op.demand ? std::abs(op.demand->b - op.demand->a) : 0; }

std::vector<ComparedOperator> compare_operators(Profiles a, Profiles b) {
  std::vector<std::string> names;
  for (const Profiles runs : {a, b}) {
    for (const profile::OperatorProfile& op : runs.front().operators) {
      if (std::find(names.begin(), names.end(), op.name) == names.end()) names.push_back(op.name);
    }
  }
  std::vector<ComparedOperator> operators;
  for (const std::string& name : names) {
    ComparedOperator op{.name = name,
                        .demand = {},
                        .in_a = place_of(a.front(), name).has_value(),
                        .in_b = place_of(b.front(), name).has_value()};
    if (op.in_a) op.workers_a = a.front().operators[*place_of(a.front(), name)].workers;
    if (op.in_b) op.workers_b = b.front().operators[*place_of(b.front(), name)].workers;
    if (all_time_it(a, name) && all_time_it(b, name)) {
      op.demand =
          compared(a, b, [&](const profile::Profile& run) { return demand_of(run, *place_of(run, name)); });
    }
    operators.push_back(std::move(op));
  }
  std::stable_sort(
      operators.begin(), operators.end(),
      [](const ComparedOperator& x, const ComparedOperator& y) { return effect_s(x) > effect_s(y); });
  return operators;
}

using Settings = std::map<std::string, std::string>;

Settings settings_of(const profile::Profile& profile) {
  Settings settings;
  for (const profile::Setting& each : profile.settings) settings[each.parameter] = each.value;
  if (profile.model) {
    for (const profile::LoaderParameter& each : profile.model->parameters)
      settings[each.name] = profile::as_written(each.value);
  }
  for (const profile::OperatorProfile& op : profile.operators) {
    for (const profile::Parameter& parameter : op.parameters)
      settings.try_emplace(parameter.parameter, as_written(parameter.value));
  }
  for (const profile::QueueProfile& queue : profile.queues) {
    for (const profile::Parameter& parameter : queue.parameters)
      settings.try_emplace(parameter.parameter, as_written(parameter.value));
  }
  return settings;
}

std::vector<ComparedSetting> compare_settings(const profile::Profile& a, const profile::Profile& b) {
  const Settings in_a = settings_of(a);
  const Settings in_b = settings_of(b);
  std::set<std::string> names;
  for (const auto& [name, value] : in_a) names.insert(name);
  for (const auto& [name, value] : in_b) names.insert(name);
  std::vector<ComparedSetting> differing;
  for (const std::string& name : names) {
    const auto value_in = [&](const Settings& settings) {
      const auto found = settings.find(name);
      return found == settings.end() ? std::string() : found->second;
    };
    ComparedSetting setting{name, value_in(in_a), value_in(in_b)};
    if (setting.a != setting.b) differing.push_back(std::move(setting));
  }
  return differing;
}

ComparedVerdict verdict_of(const profile::Profile& profile) {
  const Diagnosis diagnosis = diagnose(profile);
  return {std::string(name_of(diagnosis.kind)), diagnosis.op.value_or(""),
          diagnosis.cause ? std::string(name_of(*diagnosis.cause)) : "", diagnosis.confidence};
}

void add_notes(Profiles runs, const std::string& side, std::vector<std::string>& notes) {
  double most = 0;
  for (const profile::Profile& run : runs)
    most = std::max(most, run.host.foreign_contention_share.value_or(run.host.foreign_cpu_share.value_or(0)));
  if (most > kNeighbours)
    notes.push_back("other processes took " + percent(most) + " of the cores from " + side +
                    ": the difference may be theirs");
}

/// Runs of two programs can be compared, and their difference is no effect of a change.
void note_other_program(const Comparison& found, std::vector<std::string>& notes) {
  const bool share_one = std::any_of(found.operators.begin(), found.operators.end(),
                                     [](const ComparedOperator& op) { return op.in_a && op.in_b; });
  if (!found.operators.empty() && !share_one)
    notes.push_back("the two runs have no operator in common, so they may be runs of different programs");
}

}  // namespace

Comparison compare(std::span<const profile::Profile> a, std::span<const profile::Profile> b,
                   const std::string& name_a, const std::string& name_b) {
  Comparison found;
  found.name_a = name_a;
  found.name_b = name_b;
  found.loader_a = a.front().loader;
  found.loader_b = b.front().loader;
  found.runs_a = a.size();
  found.runs_b = b.size();
  const auto part = [&](Part which) {
    return compared(a, b, [which](const profile::Profile& run) {
      Mean mean = mean_of_run(stretches_of(run, which), computes(run));
      // The report's own: stretches also have starts of workers and pauses between epochs.
      const double steady_s = of_part(which, run.sink.step_s - run.sink.compute_s, run.sink.compute_s);
      if (mean.known() && steady_s > 0) mean.value = steady_s;
      return mean;
    });
  };
  found.step = part(Part::kStep);
  found.wait = part(Part::kWait);
  found.compute = part(Part::kCompute);
  // A wait of a microsecond that doubles is worth no word.
  for (ComparedFigure* each : {&found.wait, &found.compute})
    each->changed = each->changed && std::abs(each->b - each->a) >= kWorthAWord * found.step.a;
  for (const auto& [mean, side] : {std::pair{found.step.a, name_a}, {found.step.b, name_b}}) {
    if (mean <= 0) found.reason = "no complete step of " + side + " was recorded";
  }
  if (found.reason.empty() && !std::isfinite(found.step.high))
    found.reason = "too few steps were recorded to tell a difference from chance";
  found.operators = compare_operators(a, b);
  found.settings = compare_settings(a.front(), b.front());
  found.verdict_a = verdict_of(a.front());
  found.verdict_b = verdict_of(b.front());
  if (a.front().host.cores != b.front().host.cores && a.front().host.cores > 0 && b.front().host.cores > 0)
    found.notes.push_back(name_a + " had " + counted(a.front().host.cores, "core") + ", " + name_b + " " +
                          counted(b.front().host.cores, "core"));
  add_notes(a, name_a, found.notes);
  add_notes(b, name_b, found.notes);
  note_other_program(found, found.notes);
  return found;
}

}  // namespace headrace::analysis
