// The ends of queues as places in the list of operators, where a report only has their names.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::profile {

/// Fills in `from_operators`, `to_operators` and `to_sink` of each queue that has none of them, from its
/// `from` and `to`: reports that were saved before those figures existed have the names alone.
void find_queue_ends(Profile& profile);

}  // namespace headrace::profile
