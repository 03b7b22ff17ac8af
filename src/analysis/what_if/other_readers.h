// Predictions for another number of readers of one storage.
#pragma once

#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"

namespace headrace::analysis {

/// Storage that is as fast as it can be gives each reader its part of that: with more or fewer of them, the step may stay
/// what it is. Widens the interval to that where operators whose workers change wait for storage.
void widen_for_storage(const profile::Profile& profile, const std::vector<Change>& changes,
                       Prediction& prediction);

}  // namespace headrace::analysis
