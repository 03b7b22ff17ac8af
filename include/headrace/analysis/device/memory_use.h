// Memory of host and devices, from the allocations that PyTorch's profiler writes into a trace.
#pragma once

#include <span>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

using MemoryUseColumns = ColumnList<
    Integer<"rank">, Integer<"device_type", "PyTorch's number: 0 the host, 1 CUDA or ROCm.">,
    Integer<"device", "-1: the host.">, Integer<"events", "Allocations and frees.">,
    Integer<"peak_allocated_bytes", "Most that the allocator had given out at once.">,
    Integer<"time_ns", "Of the peak, on the clock of the file.">, Integer<"step", "-1: in none.">,
    Text<"operator", "The innermost one around the allocation that made the peak.">,
    Number<"peak_reserved_bytes", "Most that it had from the driver; NaN: the trace does not say.">,
    Integer<"first_allocated_bytes">, Integer<"last_allocated_bytes">,
    Integer<"net_bytes", "Allocated less freed while the profiler ran.">>;

/// One row per rank and device, from the instants `[memory]` (`profile_memory=True`). Totals are the
/// allocator's own, so they include what was allocated before the profiler ran.
Table memory_use(std::span<const trace::Trace> traces, const Scope& scope = {});

}  // namespace headrace::analysis::device
