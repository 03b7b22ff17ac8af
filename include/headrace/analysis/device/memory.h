// How fast memory was copied and filled, and how much was in use, from the allocations that PyTorch's profiler writes.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

using MemoryBandwidthSeriesColumns = ColumnList<
    Integer<"rank">, Text<"name">, Integer<"time_ns">,
    Number<"bandwidth_gbps", "Sum over all copies that run; holds until the next row of the name.">>;
using MemoryBandwidthColumns =
    ColumnList<Integer<"rank">, Text<"name", "The direction.">, Integer<"copies">,
               Integer<"bytes", "0: the file does not say.">, Number<"busy_s">,
               Number<"mean_gbps", "Over the time in which something of the name ran.">, Number<"p25_gbps">,
               Number<"p50_gbps">, Number<"p75_gbps">, Number<"max_gbps">>;

struct MemoryBandwidth {
  /// One row per change, by name and time.
  Table series;
  /// One row per name. Mean and quantiles weight each level with how long it held: a thousand tiny copies do
  /// not outweigh a large one.
  Table summary;
};

/// Names are the directions: "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD", "Memset", ... The bandwidth is what
/// the profiler wrote, else bytes / duration. Copies of no duration count as copies and have no bandwidth;
/// those without any figure are left out and noted.
MemoryBandwidth memory_bandwidth(std::span<const trace::Trace> traces, const Scope& scope = {});

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
