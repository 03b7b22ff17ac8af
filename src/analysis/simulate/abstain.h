// When a simulator does not answer, and what it says then.
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// A recorded run that the model misses by more is not one that it can change.
inline constexpr double kLargestMiss = 1.6;

/// Why a model that is off by `measured_over_simulated` is not believed; "" if it is.
std::string not_reproduced(const profile::Profile& profile, double measured_over_simulated);

/// Why nothing is predicted of a run that takes `cpu_share` of the cores, `pool_share` of it in thread pools of libraries,
/// which hold its operators up on full cores; "" if it is.
std::string filled_by_pools(double cpu_share, double pool_share);

/// The loader has no such change, or the change leads to more workers than are simulated.
inline constexpr const char* kNoSuchChange = "this change of this loader cannot be simulated";
inline constexpr const char* kNothingRecorded = "nothing was recorded inside the loader";

/// The answer of a simulator that abstains.
Prediction abstain(std::string why);

/// Why more readers, which `changes` ask for, gain nothing: their remote service serves no more; "" otherwise.
std::string more_readers_in_vain(const profile::Profile& profile, const std::vector<Change>& changes);

/// Storage or a server that is as fast as it can be gives each worker its part of that, and a lock lets one of them in:
/// with more or fewer of them, the step may stay what it is. Widens the interval to that where operators whose workers
/// change wait for such a thing.
void widen_for_shared_waits(const profile::Profile& profile, const std::vector<Change>& changes,
                            Prediction& prediction);

}  // namespace headrace::analysis
