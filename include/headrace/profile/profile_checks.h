// Checks of a profile from elsewhere before it is used: bounds of its figures, ends of its queues.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::profile {

/// Puts every figure within the bounds of its kind, which its name tells: a share is 0 to 1, seconds are not
/// negative, a count is not beyond what anybody counts to. What is no number becomes 0, or unknown if the
/// figure may be. A profile that a recorder made stays as it is.
void bound_figures(Profile& profile);

/// Fills in `from_operators`, `to_operators` and `to_sink` of each queue that has none of them, from its
/// `from` and `to`: reports that were saved before those figures existed have the names alone.
void find_queue_ends(Profile& profile);

}  // namespace headrace::profile
