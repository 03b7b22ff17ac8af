// What one change would buy. The interface stays when a simulator takes the place of the laws.
#pragma once

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
  bool known = false;  ///< false: abstains (foreign load above 20 % of the cores, or nothing was measured)
};

class Predictor {
 public:
  virtual ~Predictor() = default;
  /// All of `changes` made together. Thread-safe; never throws.
  virtual Prediction predict(const profile::Profile& profile, const std::vector<Change>& changes) const = 0;
};

/// Operational laws (Denning and Buzen 1978: utilisation, forced flow and bottleneck law):
///
///     step' = max(sink compute + hand-off floor, demand of every segment, CPU per step / free cores,
///                 interpreter lock held per step) + what variance still adds
///
/// Interval: +-10 % where workers <= cores or the operator sleeps, +-15 % beyond, +-20 % for buffers and
/// processes. The share that variance adds is the measured one, scaled by the blocking probability of an
/// M/M/1/K queue with the measured spread (K / cv^2 in place of K). Abstains on the parameters of a
/// DataLoader.
class OperationalLaws final : public Predictor {
 public:
  Prediction predict(const profile::Profile& profile, const std::vector<Change>& changes) const override;
};

}  // namespace headrace::analysis
