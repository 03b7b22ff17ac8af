// What one change would buy: asked by the causes for their advice, answered by the simulators of what_if.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// One thing that is set to another value.
struct Change {
  enum class Kind {
    kWorkers,    ///< of the operator (and those that share its threads); 0: in the sink's thread
    kCapacity,   ///< of the queue
    kPrefetch,   ///< operators in the sink's thread move to a background thread with a queue of `to` batches
    kProcesses,  ///< operators in threads move to `to` processes
    kService,    ///< the operator's mean service time is multiplied by `factor`
    kAlike,      ///< the operator's slowest worker becomes like its siblings: its mean changes by `factor`
    kPrefetchFactor,  ///< of a DataLoader: batches on their way per worker
    kInOrder,         ///< of a DataLoader: 1 in the sampler's order, 0 as they are ready
  };
  Kind kind = Kind::kWorkers;
  int index = -1;  ///< into Profile::operators or queues
  int to = 1;
  double factor = 1;
};

struct Prediction {
  double step_s = 0;
  double low_s = 0;
  double high_s = 0;
  std::string limit;   ///< what sets the pace then: an operator's name, "sink", or "cpu"
  bool known = false;  ///< false: abstains
  std::string why_not;  ///< where it abstains, in plain words
};

class Predictor {
 public:
  virtual ~Predictor() = default;
  /// All of `changes` made together. Thread-safe; never throws.
  virtual Prediction predict(const profile::Profile& profile, const std::vector<Change>& changes) const = 0;
};

/// The simulator that knows the rules of the recorded loader: a DataLoader's, or those of threads and queues.
std::unique_ptr<Predictor> predictor_for(const profile::Profile& profile);

}  // namespace headrace::analysis
