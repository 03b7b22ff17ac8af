// What a thread waited for a core, shared out between its operators.
#pragma once

#include <vector>

#include "headrace/profile/figures.h"

namespace headrace::profile {

/// Nanoseconds per cell: by busy time, and never more of it than was off a core. The scheduler counts the waits of a
/// thread, not of an operator. 0 where it said nothing.
std::vector<double> run_queue_waits_ns(const SegmentFigures& figures);

}  // namespace headrace::profile
