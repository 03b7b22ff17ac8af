#include "headrace/analysis/diagnosis/interventions.h"

#include "headrace/analysis/diagnosis/advice.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Simulations of one run that begin at other places of its record differ by this.
constexpr double kRepeats = 0.01;

}  // namespace

double Interventions::gain(int op) const noexcept {
  if (op < 0 || static_cast<std::size_t>(op) >= without_s.size()) return 0;
  return gain_of(without_s[static_cast<std::size_t>(op)]);
}

bool Interventions::gains(int op) const noexcept { return gain(op) > kRepeats; }

Interventions try_interventions(const Predictor& predictor) {
  const profile::Profile& profile = predictor.profile();
  Interventions found;
  if (profile.operators.size() > kMostOperators) return found;
  const Prediction as_is = predictor.predict({});
  if (!as_is.known) return found;
  found.as_is_s = as_is.step_s;
  const auto step_with = [&](const std::vector<Change>& changes) {
    const Prediction then = predictor.predict(changes);
    return then.known ? then.step_s : as_is.step_s;
  };
  found.even_s = step_with({{Change::Kind::kEven, 0, 1, 1}});
  std::vector<Change> all;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const bool takes_time = profile.operators[i].demand_s > 0;
    const Change absent{Change::Kind::kService, static_cast<int>(i), 1, 0};
    found.without_s.push_back(takes_time ? step_with({absent}) : as_is.step_s);
    if (takes_time && profile.operators[i].kind != profile::OperatorKind::handoff) all.push_back(absent);
  }
  found.free_s = step_with(all);
  return found;
}

}  // namespace headrace::analysis
