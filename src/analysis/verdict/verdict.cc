#include "headrace/analysis/verdict/diagnose.h"

#include <memory>
#include <utility>
#include <vector>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/interventions.h"

namespace headrace::analysis {
namespace {

/// Predictor for an operator and a cause, no advice.
class InterventionsOnly : public Predictor {
 public:
  explicit InterventionsOnly(const profile::Profile& profile)
      : Predictor(profile), simulator_(predictor_for(profile)) {}

  Prediction predict(const std::vector<Change>& changes) const override {
    return is_intervention(profile(), changes) ? simulator_->predict(changes) : Prediction{};
  }

 private:
  std::unique_ptr<Predictor> simulator_;
};

}  // namespace

Verdict verdict_on(const profile::Profile& recorded) {
  const profile::Profile profile = plausible(recorded);
  // Whether a loader has too many workers is predicted, so its verdict needs the simulation.
  Diagnosis found = loader_of(profile) ? diagnose(CachedPredictor(predictor_for(profile)))
                                       : diagnose(InterventionsOnly(profile));
  Verdict verdict{found.kind, std::move(found.op), found.cause, {}};
  for (const Evidence& each : found.evidence) {
    const auto most = each.figures.find("most_speedup");
    if (each.rule == Rule::gate && most != each.figures.end()) verdict.most_speedup = most->second;
  }
  return verdict;
}

}  // namespace headrace::analysis
