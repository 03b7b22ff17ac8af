// A Profile whose figures the rules may divide by without looking: bounded, finite, of matching lengths.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// A copy in which every number that is not finite or is negative is 0, shares lie in 0..1, times are at most
/// a thousand years, workers and cores at most a million, and windows have one entry per operator and queue.
/// What was plausible is unchanged.
profile::Profile plausible(const profile::Profile& recorded);

}  // namespace headrace::analysis
