// Gain of a change to a recorded loader: the recorded run is simulated with it, and without.
#pragma once

#include <memory>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

class Reproduction;

/// The interval is what repeated runs differ by, plus the model's own measured error: +-10 % where the CPU work fits the
/// cores and nothing else uses them, +-15 % beyond; wider where the run as recorded is not reproduced, and for what the
/// recording tells little about (a queue whose length is not known, processes in place of threads, a hand-off that was
/// only sampled). Beside other programs the run has the cores that they leave; the low end is the step if they give some
/// back. Abstains where the recorded run is off by more than a factor of 1.6, and for changes that such a loader does not
/// have. Deterministic; one prediction takes 1 ms or so.
class Simulator final : public Predictor {
 public:
  explicit Simulator(const profile::Profile& profile);
  ~Simulator() override;
  Prediction predict(const std::vector<Change>& changes) const override;

 private:
  std::unique_ptr<Reproduction> reproduction_;
};

}  // namespace headrace::analysis
