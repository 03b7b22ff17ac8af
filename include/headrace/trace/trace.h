// The trace of one rank with all that is resolved once: what every analysis of device traces begins with.
//
//     for (const headrace::trace::Trace& trace : headrace::trace::load_traces(paths))
//       std::cout << trace.rank << ": " << trace.steps.all().size() << " steps\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/trace/call_stack.h"
#include "headrace/trace/event_kind.h"
#include "headrace/trace/reader.h"
#include "headrace/trace/steps.h"

namespace headrace::trace {

struct Trace {
  TraceFile file;
  /// The file's rank, or if it has none, the smallest that no other file of the same call has.
  std::int64_t rank = 0;
  std::vector<EventKind> kinds;
  /// Kernels, copies and fills by their start; of two with the same start, in the order of the file.
  std::vector<Row> device_rows;
  Correlation correlation;
  /// `Correlation::clock_gap_ns`: if it is not 0, times of host and device cannot be compared.
  std::int64_t clock_gap_ns = 0;
  CallStack calls;
  Steps steps;
  /// One of several that were recorded one after the other: they are runs, not ranks that can be compared.
  bool is_run_of_its_own = false;

  const Columns& columns() const noexcept { return file.columns; }
};

/// From the first event of host or device to the last; marks and counters do not count.
std::int64_t length_ns(const Trace& trace) noexcept;

/// When the first work that is recorded was launched, or began where its launch is unknown; nothing without
/// work.
std::optional<std::int64_t> first_launch_ns(const Trace& trace) noexcept;

/// The host's calls that wait for the device and end before that: they wait for work that is not in the file.
std::vector<Row> waits_for_older_work(const Trace& trace);

/// Resolves what was read; the rank is that of the file or 0.
Trace resolve(TraceFile file);

/// Reads and resolves a file of one rank. Throws as `read_file` does.
Trace load_trace(const std::string& path, const ReadOptions& options = {});

/// Ascending by rank. A trace whose file does not say its rank gets the smallest that no other has; two may
/// say the same, they then stay in the order in which they were given.
void arrange_by_rank(std::vector<Trace>& traces);

/// Reads and resolves files in parallel: a trace for each rank of each file, arranged by rank. `ranks`: of
/// the files in their order, whatever they say themselves, but for files of several ranks; empty: as they
/// say. Throws as `read_traces` does.
std::vector<Trace> load_traces(const std::vector<std::string>& paths, const ReadOptions& options = {},
                               const std::vector<std::int64_t>& ranks = {});

}  // namespace headrace::trace
