// A large device trace, made in memory: the same events, arguments and pretty printing as PyTorch's profiler
// writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::bench {

/// What every contender has to find in it.
struct TraceTotals {
  std::size_t complete = 0;          ///< events with a duration
  std::int64_t duration_ns = 0;      ///< of all of them
  std::int64_t correlation_sum = 0;  ///< of all events that have one
  bool operator==(const TraceTotals&) const = default;
};

struct LargeTrace {
  std::string json;
  std::string gzip;  ///< the same, compressed
  TraceTotals totals;
};

/// About `bytes` of JSON: steps of operators, their launches, flows and kernels, with shapes and call stacks
/// in the share in which a training trace has them. Made once.
const LargeTrace& large_trace();

}  // namespace headrace::bench
