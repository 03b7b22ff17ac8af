// The second question: which operator could not keep up even alone?
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/analysis/read/evidence.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Operators that share threads, and so add up.
struct SegmentDemand {
  std::vector<int> operators;  ///< indices into Profile::operators
  int largest = -1;            ///< the one of them with the largest demand
  double demand_s = 0;     ///< busy time per delivered batch / workers: the step time it could sustain alone
  double utilisation = 0;  ///< demand / step: close to 1, it never rests; it sets the pace
  bool in_sink = false;
};

struct DemandRanking {
  std::vector<SegmentDemand> segments;  ///< largest demand first
  Evidence evidence;

  bool empty() const noexcept { return segments.empty(); }
  const SegmentDemand& first() const { return segments.front(); }
  /// Demand of the second segment, 0 if there is none.
  double second_s() const noexcept { return segments.size() > 1 ? segments[1].demand_s : 0; }
  /// The segment that runs operator `index`; null if it has no demand of its own.
  const SegmentDemand* of(int index) const noexcept;
};

/// Copies that run in the training step are no part of it: the step's own time holds them.
/// Operators of fidelity "inclusive" contain their inputs' time: they count only where nothing finer is
/// known.
DemandRanking rank_demand(const profile::Profile& profile, double step_s);

/// Demand of each operator, per operator of the profile: what an "inclusive" one shares with finer ones left
/// out; 0 for copies that run in the training step.
std::vector<double> own_demands(const profile::Profile& profile);

/// How often the levels of the queues were read, of the one read least; empty where each change was seen.
std::optional<std::uint64_t> level_samples(const profile::Profile& profile) noexcept;

/// CPU time of one operator per delivered batch, all workers together; 0 if it is not known.
double cpu_per_batch_s(const profile::OperatorProfile& op) noexcept;

/// `cpu_per_batch_s` plus library threads that compute for it in its worker processes.
double all_cpu_per_batch_s(const profile::OperatorProfile& op) noexcept;

/// The latter of all operators.
double input_cpu_s(const profile::Profile& profile) noexcept;

/// The operator with the largest of these: its index; below 0 if none is known.
int operator_with_most_cpu(const profile::Profile& profile) noexcept;

/// On a core, or runnable without one, / busy: 1 burns CPU, 0 sleeps. Below 0: not known.
double cpu_bound_share(const profile::OperatorProfile& op) noexcept;

/// Runnable without a core / busy; 0 where it is not known.
double core_wait_share(const profile::OperatorProfile& op) noexcept;

}  // namespace headrace::analysis
