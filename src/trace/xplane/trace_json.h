// The JSON that lies beside an XPlane profile (`*.trace.json.gz`): planes are processes and lines threads.
#pragma once

#include "headrace/trace/columns.h"

namespace headrace::trace::xplane {

/// By the names of its processes.
bool is_trace_json(const Columns& columns) noexcept;

/// Gives events the categories, streams, correlations and devices that `read_xplane` gives them; needs the
/// arguments of `with_arguments`. Of operations that hold others, all of their time stays: the file has it no
/// other way.
void adopt_trace_json(Columns& columns);

}  // namespace headrace::trace::xplane
