// How fast memory was copied and filled.
#pragma once

#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

struct MemoryBandwidth {
  /// One row per change, by name and time: rank name time_ns bandwidth_gbps. The sum over all copies of the
  /// name that run at that moment, on whatever stream; it holds until the next row of the name. `time_ns` is
  /// on the clock of the file.
  Table series;
  /// One row per name:
  ///
  ///     rank name copies bytes busy_s mean_gbps p25_gbps p50_gbps p75_gbps max_gbps
  ///
  /// Mean and quantiles are over the time in which something of the name ran (`busy_s`), each level weighted
  /// with how long it held: a thousand tiny copies do not outweigh a large one.
  Table summary;
};

/// Names are the directions: "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD", "Memset", ... The bandwidth is what
/// the profiler wrote, else bytes / duration. Copies of no duration count as copies and have no bandwidth;
/// those without any figure are left out and noted. `bytes` is 0 if the file does not say.
MemoryBandwidth memory_bandwidth(std::span<const trace::Trace> traces, const Scope& scope = {});

}  // namespace headrace::analysis::device
