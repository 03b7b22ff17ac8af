// A device trace written again with counters: how much launched work waited in front of each stream, and how
// fast memory was copied.
//
//     const auto trace = headrace::trace::load_trace("rank0.json.gz");
//     write_with_counters({.trace = trace, .out = "rank0.counters.json.gz"});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/analysis/device/device_work.h"
#include "headrace/trace/byte_source.h"
#include "headrace/trace/trace.h"

namespace headrace::timeline {

struct CountersRequest {
  const trace::Trace& trace;
  std::string out;  ///< gzip, or plain JSON where it ends in ".json"
  /// Scope of the counters; all events are passed on.
  analysis::device::Scope scope = {};
  /// The bytes that `trace` was read from, from their beginning; asked once, and once more where they are
  /// damaged. Nothing: the file at the trace's path.
  std::function<std::unique_ptr<trace::ByteSource>()> open = {};
};

struct CountersResult {
  std::string path;
  std::uint64_t counters = 0;      ///< events that were added
  std::uint64_t bytes = 0;         ///< of the file
  std::vector<std::string> notes;  ///< a sentence each: what was left out
};

/// The document stays as it is, byte for byte; behind its last event stand the points of the series of
/// `queue_length` and `memory_bandwidth` (analysis/device), as events of phase C and category `headrace`:
///
///     name "Queue Length"  id: the stream  pid: its device's  args {"Queue Length": pieces of work}
///     name "Memcpy HtoD"   the direction   pid: of the first  args {"Memcpy BW": GB/s}
///
/// Each value holds until the next one of its track. Of a damaged trace every event and member that is JSON
/// is kept. Memory: a few windows, and the series. Throws UsageError if there is nothing to count, or
/// `out` is the trace itself, FormatError or Error where files cannot be read or written.
CountersResult write_with_counters(const CountersRequest& request);

}  // namespace headrace::timeline
