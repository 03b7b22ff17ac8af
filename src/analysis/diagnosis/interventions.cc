#include "headrace/analysis/diagnosis/interventions.h"

#include "headrace/analysis/diagnosis/advice.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Simulations of one run that begin at other places of its record differ by this.
constexpr double kRepeats = 0.01;

}  // namespace

double Interventions::gain(int op) const noexcept {
  if (as_is_s <= 0 || op < 0 || static_cast<std::size_t>(op) >= without_s.size()) return 0;
  return 1 - without_s[static_cast<std::size_t>(op)] / as_is_s;
}

bool Interventions::gains(int op) const noexcept { return gain(op) > kRepeats; }

Interventions try_interventions(const Predictor& predictor) {
  const profile::Profile& profile = predictor.profile();
  Interventions found;
  if (profile.operators.size() > kMostOperators) return found;
  const Prediction as_is = predictor.predict({});
  if (!as_is.known) return found;
  found.as_is_s = as_is.step_s;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    Prediction then = as_is;
    if (profile.operators[i].demand_s > 0)
      then = predictor.predict({{Change::Kind::kService, static_cast<int>(i), 1, 0}});
    found.without_s.push_back(then.known ? then.step_s : as_is.step_s);
  }
  return found;
}

}  // namespace headrace::analysis
