// Which event ended each allocation.
#pragma once

#include "headrace/memory/snapshot.h"

namespace headrace::memory {

/// Fills `events.other_end`.
void join_lifetimes(Events& events, const std::vector<DeviceEvents>& devices);

}  // namespace headrace::memory
