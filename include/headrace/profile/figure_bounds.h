// What a figure of a profile can be, whatever a damaged segment or a foreign JSON file says.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::profile {

/// Puts every figure within the bounds of its kind, which its name tells: a share is 0 to 1, seconds are not
/// negative, a count is not beyond what anybody counts to. What is no number becomes 0, or unknown if the
/// figure may be. A profile that a recorder made stays as it is.
void bound_figures(Profile& profile);

}  // namespace headrace::profile
