#include "headrace/analysis/diagnosis/removal.h"

#include <algorithm>
#include <vector>

#include "headrace/analysis/diagnosis/demand.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Another operator must gain so many times as much, and so much of the step more: less is within what simulations
/// are off by.
constexpr double kClearly = 1.2;
constexpr double kOfStep = 0.05;

std::optional<double> step_without(const Predictor& predictor, int index) {
  const Prediction then = predictor.predict({{Change::Kind::kService, index, 1, 0}});
  return then.known ? std::optional(then.step_s) : std::nullopt;
}

}  // namespace

Removal most_gained_by_removing(const Predictor& predictor, int index) {
  const profile::Profile& profile = predictor.profile();
  Removal best{index, step_without(predictor, index)};
  if (!best.step_s || profile.operators.size() > kMostOperators) return best;
  const Prediction as_is = predictor.predict({});
  if (!as_is.known) return best;
  double most_s = as_is.step_s - *best.step_s;
  const double least_s = std::max(kClearly * most_s, most_s + kOfStep * as_is.step_s);
  const std::vector<double> demands = own_demands(profile);
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const int other = static_cast<int>(i);
    // Handing batches over is part of whatever makes them.
    if (other == index || demands[i] <= 0 || profile.operators[i].kind == profile::OperatorKind::handoff)
      continue;
    const std::optional<double> step_s = step_without(predictor, other);
    if (!step_s || as_is.step_s - *step_s < std::max(least_s, most_s)) continue;
    most_s = as_is.step_s - *step_s;
    best = {other, step_s};
  }
  return best;
}

}  // namespace headrace::analysis
