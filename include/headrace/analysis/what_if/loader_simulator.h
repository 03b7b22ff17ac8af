// What a change to a loader that makes batches ahead would buy: the recorded run is simulated with it, and
// without.
#pragma once

#include <memory>
#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

class Reproduction;

/// The interval is what repeated runs differ by, plus the model's own measured error: +-10 % where the
/// workers fit the cores and nothing else uses them, +-15 % beyond; wider where the run as recorded is not
/// reproduced. Abstains above 20 % foreign load, where the recorded run is off by more than a factor of 1.6,
/// and for changes that such a loader does not have. Deterministic; one prediction takes 1 ms or so.
class LoaderSimulator final : public Predictor {
 public:
  explicit LoaderSimulator(const profile::Profile& profile);
  ~LoaderSimulator() override;
  Prediction predict(const std::vector<Change>& changes) const override;

 private:
  std::unique_ptr<Reproduction> reproduction_;
};

/// Whether enough of a loader was recorded to simulate it.
bool can_simulate(const profile::Profile& profile);

}  // namespace headrace::analysis
