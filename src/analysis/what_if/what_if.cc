#include "headrace/analysis/what_if/what_if.h"

#include <algorithm>
#include <optional>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/parameters.h"
#include "headrace/profile/errors.h"

namespace headrace::analysis {
namespace {

std::string listed(const std::vector<Parameter>& parameters) {
  constexpr std::size_t kMax = 40;
  std::vector<std::string> names;
  for (const Parameter& each : parameters) {
    if (std::find(names.begin(), names.end(), each.name) == names.end()) names.push_back(each.name);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMax) text += ", and " + std::to_string(names.size() - kMax) + " more";
  return text;
}

const Parameter& find(const std::vector<Parameter>& parameters, const std::string& name) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& each) { return each.name == name; });
  if (found != parameters.end()) return *found;
  throw UsageError(
      "what_if knows no parameter " + name + " of this loader; " +
      (parameters.empty() ? "nothing inside it was recorded" : "there are: " + listed(parameters)));
}

/// A loader without workers refuses the parameters of workers; so does its simulation.
void need_workers(const profile::Profile& profile, const std::vector<Parameter>& parameters,
                  const std::vector<Assignment>& assignments, const std::vector<Change>& changes) {
  const std::optional<Loader> loader = loader_of(profile);
  if (!loader) return;
  int workers = loader->workers;
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::kWorkers) workers = change.to;
  }
  if (workers > 0) return;
  const profile::LoaderParameter* sets_workers = loader->parameter(profile::Quantity::workers);
  for (const Assignment& each : assignments) {
    if (!find(parameters, each.parameter).needs_workers) continue;
    throw UsageError(each.parameter + " needs workers" +
                     (sets_workers == nullptr ? "" : ": set " + sets_workers->name + " as well"));
  }
}

}  // namespace

WhatIf what_if(const profile::Profile& recorded, const std::vector<Assignment>& assignments) {
  const profile::Profile profile = plausible(recorded);
  const std::vector<Parameter> parameters = parameters_of(profile);
  std::vector<Change> changes;
  for (const Assignment& each : assignments) {
    find(parameters, each.parameter);
    // One parameter may set several queues.
    for (const Parameter& parameter : parameters) {
      if (parameter.name == each.parameter) changes.push_back(change_to(parameter, each.value));
    }
  }
  need_workers(profile, parameters, assignments, changes);
  // The others mean something only once there are workers; an operator's own number of processes is set last.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return (a.kind == Change::Kind::kWorkers) > (b.kind == Change::Kind::kWorkers);
  });
  for (Change& change : changes) {
    if (change.kind != Change::Kind::kProcesses) continue;
    for (const Change& other : changes) {
      if (other.kind == Change::Kind::kWorkers && other.index == change.index) change.to = other.to;
    }
  }
  const Prediction prediction = predictor_for(profile)->predict(changes);
  WhatIf answer;
  answer.known = prediction.known;
  answer.reason = prediction.why_not;
  answer.step_s = prediction.step_s;
  answer.low_s = prediction.low_s;
  answer.high_s = prediction.high_s;
  answer.bottleneck = prediction.limit;
  return answer;
}

}  // namespace headrace::analysis
