#include "headrace/analysis/diagnosis/verdict.h"

#include <utility>

#include "headrace/analysis/diagnosis/diagnose.h"
#include "headrace/analysis/diagnosis/loader.h"
#include "headrace/analysis/diagnosis/plausible.h"
#include "headrace/analysis/diagnosis/predictor.h"

namespace headrace::analysis {
namespace {

class NoPredictions : public Predictor {
 public:
  using Predictor::Predictor;
  Prediction predict(const std::vector<Change>& /*changes*/) const override { return {}; }
};

}  // namespace

Verdict verdict_on(const profile::Profile& recorded) {
  const profile::Profile profile = plausible(recorded);
  // Whether a loader has too many workers is predicted, so its verdict needs the simulation.
  Diagnosis found = loader_of(profile) ? diagnose(*predictor_for(profile)) : diagnose(NoPredictions(profile));
  return {found.kind, std::move(found.op), found.cause};
}

}  // namespace headrace::analysis
