// Events that are written as two: where something begins (phase B) and where it ends (E).
#pragma once

#include <cstddef>

#include "headrace/trace/columns.h"

namespace headrace::trace {

/// Gives each event of phase B the time to its end and phase X, as if it had been written as one; its E stays. The
/// last that began in a lane ends first. Returns how many have no end or no beginning; those are left as they are.
std::size_t pair_begin_end(Columns& columns);

}  // namespace headrace::trace
