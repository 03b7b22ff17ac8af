// Predictions for another number of workers that wait for one thing.
#pragma once

#include <vector>

#include "headrace/analysis/simulate/predictor.h"

namespace headrace::analysis {

/// Storage or a server that is as fast as it can be gives each worker its part of that, and a lock lets one of them in:
/// with more or fewer of them, the step may stay what it is. Widens the interval to that where operators whose workers
/// change wait for such a thing.
void widen_for_shared_waits(const profile::Profile& profile, const std::vector<Change>& changes,
                            Prediction& prediction);

}  // namespace headrace::analysis
