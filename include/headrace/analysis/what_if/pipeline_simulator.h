// What a change to a pipeline of threads and queues would buy: the recorded run is simulated with it, and
// without.
#pragma once

#include <memory>
#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

class Reproduction;

/// The interval is what repeated runs differ by, plus the model's own measured error: +-10 % where the CPU
/// work fits the cores, +-15 % beyond; wider where the run as recorded is not reproduced, for a queue whose
/// length is not known, and for processes in place of threads. Abstains above 20 % foreign load, where the
/// recorded run is off by more than a factor of 1.6, and for changes that such a pipeline does not have.
/// Deterministic.
class PipelineSimulator final : public Predictor {
 public:
  explicit PipelineSimulator(const profile::Profile& profile);
  ~PipelineSimulator() override;
  Prediction predict(const std::vector<Change>& changes) const override;

 private:
  std::unique_ptr<Reproduction> reproduction_;
};

}  // namespace headrace::analysis
