// The training loop of a profile: its steps, its waits, and what they were spent on.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/graph.h"

namespace headrace::profile {

/// `since_ns`: the loop time at which `figures` begin.
SinkProfile sink_of(const LoaderRecord& record, const SegmentFigures& figures, std::int64_t since_ns);

/// Sums to the GetNext wait.
std::vector<LedgerRow> stall_ledger_of(const LoaderRecord& record, const SegmentFigures& figures,
                                       const Graph& graph);

}  // namespace headrace::profile
