// `trace_view.json` of an Ascend profile: gives its events what other traces have and it leaves to its rows.
#pragma once

#include "headrace/trace/columns.h"

namespace headrace::trace::ascend {

/// Nothing happens to columns of other profilers (no row of them is called "Ascend Hardware" or "CANN").
///
/// - Events without a category get one (categories.h): by their row, and on the device by the type of task.
/// - Calls of CANN move to the row of the framework's thread that made them: the file shows one thread as two.
/// - Work on the device gets its device's number and, for collectives, the stream that they ran on.
/// - Copies are named by their direction ("Memcpy HtoD").
void adopt_trace_view(Columns& columns);

}  // namespace headrace::trace::ascend
