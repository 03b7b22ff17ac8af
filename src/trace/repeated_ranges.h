// Steps of a trace in which no profiler marked them.
#pragma once

#include <string>
#include <vector>

#include "headrace/trace/call_stack.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/correlation.h"
#include "headrace/trace/event_kind.h"
#include "headrace/trace/steps.h"

namespace headrace::trace {

struct RepeatedRanges {
  std::string name;  ///< digits as N; empty if nothing repeats
  std::vector<Step> ranges;
};

/// The annotations that stand for steps, as `Steps` says.
RepeatedRanges repeated_ranges(const Columns& columns, const std::vector<EventKind>& kinds,
                               const Correlation& correlation, const CallStack& calls);

}  // namespace headrace::trace
