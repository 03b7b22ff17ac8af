// The parameters of a recorded loader that can be tried in its simulation, under the names that its user
// writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct Parameter {
  enum class Value { kWhole, kFactor, kTrueFalse, kExecutor };

  std::string name;  ///< "decode.workers", "decoded.capacity"
  Change::Kind kind = Change::Kind::kWorkers;
  int index = -1;  ///< into Profile::operators or queues, as Change has it
  Value value = Value::kWhole;
  std::string now;  ///< as it is set in the recorded run
  double min = 0;
  double max = 0;
  bool needs_workers = false;  ///< refused where everything runs in the training loop
};

/// A framework's loader has those of its model, a pipeline of threads and queues NAME.workers
/// and NAME.executor per operator, NAME.capacity per queue, prefetch where everything runs in the training
/// loop. Both have NAME.speedup per operator ("what if decode were twice as fast"). Operators that share a
/// thread have one number of workers, under the name of each.
std::vector<Parameter> parameters_of(const profile::Profile& profile);

/// `text` as a change of `parameter`. Throws UsageError if it is no value that the parameter can have.
Change change_to(const Parameter& parameter, const std::string& text);

}  // namespace headrace::analysis
