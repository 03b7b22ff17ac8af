// Predictions for another number of workers that wait for one thing.
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"

namespace headrace::analysis {

/// Why more readers, which `changes` ask for, gain nothing: their remote service serves no more; "" otherwise.
std::string more_readers_in_vain(const profile::Profile& profile, const std::vector<Change>& changes);

/// Storage or a server that is as fast as it can be gives each worker its part of that, and a lock lets one of them in:
/// with more or fewer of them, the step may stay what it is. Widens the interval to that where operators whose workers
/// change wait for such a thing.
void widen_for_shared_waits(const profile::Profile& profile, const std::vector<Change>& changes,
                            Prediction& prediction);

}  // namespace headrace::analysis
