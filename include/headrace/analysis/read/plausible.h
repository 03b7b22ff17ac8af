// Plausible figures, on which a verdict may rest: possible, and without contradictions.
#pragma once

#include <string>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The profile with every figure within its bounds (profile/figure_bounds.h), parts in the size of their
/// whole, and the number of its windows limited. A profile that a recorder made is unchanged.
profile::Profile plausible(const profile::Profile& recorded);

/// "decode.demand_s is 31 days in a run of 40.0 s": the first figure that contradicts how long the run was,
/// as those of a damaged recording do; "" if there is none. Of a plausible profile.
std::string contradiction(const profile::Profile& profile);

}  // namespace headrace::analysis
