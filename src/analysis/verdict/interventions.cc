#include "headrace/analysis/verdict/interventions.h"

#include <algorithm>

#include "../read/numbers.h"
#include "headrace/analysis/read/cores.h"
#include "search.h"

namespace headrace::analysis {
namespace {

int more_of(const profile::OperatorProfile& op) noexcept {
  constexpr int kMax = 1 << 20;
  return MoreWorkers::kTimes * std::clamp(op.workers, 1, kMax);
}

/// The step with `changes`; `as_is_s` where that is not known.
double step_with(const Predictor& predictor, const std::vector<Change>& changes, double as_is_s) {
  const Prediction then = predictor.predict(changes);
  return then.known ? then.step_s : as_is_s;
}

}  // namespace

double Interventions::gain(int op) const noexcept {
  if (op < 0 || static_cast<std::size_t>(op) >= without_s.size()) return 0;
  return gain_of(without_s[static_cast<std::size_t>(op)]);
}

bool Interventions::gains(int op) const noexcept { return gain(op) > kNoise; }

Interventions try_interventions(const Predictor& predictor) {
  const profile::Profile& profile = predictor.profile();
  Interventions found;
  if (profile.operators.size() > kMaxOperators) return found;
  const Prediction as_is = predictor.predict({});
  if (!as_is.known) return found;
  found.as_is_s = as_is.step_s;
  found.even_s = step_with(predictor, {{Change::Kind::kEven, 0, 1, 1}}, as_is.step_s);
  std::vector<Change> all;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const bool takes_time = profile.operators[i].demand_s > 0;
    const Change absent{Change::Kind::kService, static_cast<int>(i), 1, 0};
    found.without_s.push_back(takes_time ? step_with(predictor, {absent}, as_is.step_s) : as_is.step_s);
    if (takes_time && profile.operators[i].kind != profile::OperatorKind::handoff) all.push_back(absent);
  }
  found.free_s = step_with(predictor, all, as_is.step_s);
  return found;
}

bool is_intervention(const profile::Profile& profile, const std::vector<Change>& changes) noexcept {
  return std::all_of(changes.begin(), changes.end(), [&](const Change& change) {
    switch (change.kind) {
      case Change::Kind::kService:
        return change.factor < 1;
      case Change::Kind::kWorkers: {
        const auto at = static_cast<std::size_t>(change.index);
        return at < profile.operators.size() && change.to == more_of(profile.operators[at]);
      }
      case Change::Kind::kEven:
      case Change::Kind::kUsual:
      case Change::Kind::kCores:
      case Change::Kind::kFreeThreaded:
        return true;
      default:
        return false;
    }
  });
}

MoreWorkers try_more_workers(const Predictor& predictor, const Interventions& interventions, int op) {
  MoreWorkers found;
  if (op < 0 || !interventions.known()) return found;
  const profile::OperatorProfile& of = predictor.profile().operators[static_cast<std::size_t>(op)];
  const Change more{Change::Kind::kWorkers, op, more_of(of), 1};
  const Prediction as_is = predictor.predict({more});
  if (!as_is.known) return found;
  found.unchanged_s = interventions.as_is_s;
  // Others do not give way to an operator that waits for a core most of its time already.
  const bool yield = has_neighbours(predictor.profile().host) && core_wait_share(of) < kMostOf;
  found.as_is_s = yield ? as_is.yielded_s : as_is.step_s;
  found.without_lock_s =
      step_with(predictor, {more, {Change::Kind::kFreeThreaded, 0, 1, 1}}, interventions.as_is_s);
  const Change cores{Change::Kind::kCores, 0, 1, 1};
  found.with_cores_s = step_with(predictor, {more, cores}, interventions.as_is_s);
  if (yield && !found.lack_cores() && !found.lack_the_lock())
    found.with_both_s =
        step_with(predictor, {more, cores, {Change::Kind::kFreeThreaded, 0, 1, 1}}, interventions.as_is_s);
  return found;
}

}  // namespace headrace::analysis
