// What a change to a DataLoader would buy: the recorded run is simulated with it, and without.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "headrace/analysis/diagnosis/loader.h"
#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The interval is what repeated runs differ by, plus the model's own measured error: +-10 % where the
/// workers fit the cores and nobody else uses them, +-15 % beyond; wider where the run as recorded is not
/// reproduced. Abstains above 20 % foreign load, where the recorded run is off by more than a factor of 1.6,
/// and for changes that a DataLoader does not have. Deterministic; one prediction takes 1 ms or so.
class LoaderSimulator final : public Predictor {
 public:
  Prediction predict(const profile::Profile& profile, const std::vector<Change>& changes) const override;

 private:
  /// The same run is asked about many changes: how well it is reproduced is found once.
  struct Reproduced {
    std::string figures;  ///< of the profile it is about
    double measured_over_simulated = 1;
  };
  double reproduce(const profile::Profile& profile, const Loader& loader) const;

  mutable std::mutex mutex_;
  mutable Reproduced reproduced_;
};

/// Whether enough of a loader was recorded to simulate it.
bool can_simulate(const profile::Profile& profile);

}  // namespace headrace::analysis
