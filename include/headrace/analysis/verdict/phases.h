// The run in time: neighbouring windows joined until each has enough steps to be judged by itself.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "headrace/analysis/read/service_shape.h"
#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct Phase {
  double start_s = 0;
  double end_s = 0;
  double steps = 0;
  double wait_s = 0;
  double starved_s = 0;
  double compute_s = 0;
  bool bound = false;            ///< it starves as much as a run that is input-bound
  std::vector<double> demand_s;  ///< per operator, busy per batch / workers in this phase
  std::vector<double> items;     ///< per operator
  std::vector<double> samples;  ///< per operator: readings of queues that its demand is from; 0: it was timed

  double duration_s() const noexcept { return wait_s + compute_s; }
  double starved_share() const noexcept { return duration_s() > 0 ? starved_s / duration_s() : 0; }
  /// Index of the operator with the largest demand; below 0: nothing was busy.
  int leader() const noexcept;
};

std::vector<Phase> phases_of(const profile::Profile& profile, const Thresholds& thresholds);

/// How much more one operator's demand moves between phases than chance explains: variance of the phases'
/// means over the variance that items, or samples, drawn at random from the whole run would give. About 1:
/// noise. Well above: it changes.
double drift_ratio(const std::vector<Phase>& phases, int op, const ServiceShape& shape,
                   const PhaseThresholds& thresholds);

/// Two operators that lead the bound phases in turn (indices), if there are such.
std::optional<std::pair<int, int>> alternating_pair(const std::vector<Phase>& phases,
                                                    const std::vector<ServiceShape>& shapes,
                                                    const PhaseThresholds& thresholds);

/// The phases that starved, taken together, where the run is bound in some of them only and `op` explains
/// which.
struct Intermittence {
  double bound_time_share = 0;
  double bound_demand_s = 0;  ///< of `op`, in the bound phases
  double bound_step_s = 0;
  double bound_compute_s = 0;
  double bound_step_share = 0;  ///< of the steps
  double calm_step_s = 0;
  double calm_from_s = 0;  ///< the end of the bound phases, where all calm ones come after them; else 0
};
std::optional<Intermittence> intermittence(const std::vector<Phase>& phases, int op,
                                           const ServiceShape& shape, const PhaseThresholds& thresholds);

/// A queue in front of the sink that is drained and not yet empty: the wait is still to come.
struct Drain {
  int queue = -1;
  double first_mean = 0;  ///< items in the first third of the run
  double last_mean = 0;   ///< and in the last
  double drained = 0;     ///< items that were delivered and not made, over the run
};
std::optional<Drain> draining_queue(const profile::Profile& profile);

/// The profile as it will be once that queue is empty: operators need more per batch than they did per
/// delivered one, and the sink waits for the slowest. Empty if no operator is slower than the sink.
std::optional<profile::Profile> once_drained(const profile::Profile& profile, const Drain& drain);

}  // namespace headrace::analysis
