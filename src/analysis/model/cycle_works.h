// Cost of a stage's cycles, or of loading in the training loop's thread: the recorded works of all operators that
// share a thread, put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/model/network.h"
#include "headrace/profile/profile.h"
#include "recorded_batches.h"

namespace headrace::analysis {

/// Effects of the changes, per operator.
struct Effects {
  explicit Effects(std::size_t operators)
      : service(operators, 1),
        alike(operators, false),
        usual(operators, false),
        in_process(operators, false) {}

  /// Whether the change is one of these, made to `operators` only.
  bool apply(const Change& change);

  std::vector<double> service;
  std::vector<bool> alike;
  std::vector<bool> usual;
  std::vector<bool> in_process;
  bool free_threaded = false;
};

/// How much of their CPU time threads hold the interpreter lock.
struct LockShares {
  std::vector<double> of_cpu;  ///< per operator: share of its CPU time that is spent holding it
  double of_step_cpu = 0;      ///< the same of the training step
  double waiters = 0;  ///< threads that a holder keeps waiting, on average; 0 where their waits are known
};

/// Nobody's: each worker is a process.
LockShares no_lock(const profile::Profile& profile);
/// The threads in the training loop's process.
LockShares lock_shares(const profile::Profile& profile);

class CycleWorks {
 public:
  CycleWorks(const profile::Profile& profile, const Effects& effects, LockShares lock, std::uint64_t seed);

  /// Lanes of recorded workers, `most` of them. `cycles_per_batch`: what the operators do per batch is done in so many.
  std::vector<WorkSequence> lanes(const std::vector<int>& operators, double cycles_per_batch, int most);
  /// Name of the one that takes most of them.
  std::string largest(const std::vector<int>& operators) const;
  /// Per batch, that its workers waited for the interpreter lock; none: nobody looked.
  std::optional<double> lock_wait_s(const std::vector<int>& operators) const;
  /// The training steps. `own_s`: their mean without what a simulation adds by itself. Where nobody looked at its thread,
  /// the loop waits for a core as much, per CPU time, as `operators`.
  std::vector<Work> steps(double own_s, const std::vector<int>& operators) const;

 private:
  struct Part;
  Work in_cycle(const Part& part, std::size_t lane, std::size_t number);
  Work in_thread(const Work& work, double held_of_cpu, bool locks) const;

  const profile::Profile& profile_;
  const Effects& effects_;
  LockShares lock_;
  std::vector<double> demands_;
  RecordedBatches::Random random_;
};

}  // namespace headrace::analysis
