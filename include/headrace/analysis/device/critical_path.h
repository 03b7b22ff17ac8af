// The chain of events that a part of a trace could not have been shorter than.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/analysis/device/critical_path_graph.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

struct CriticalPath {
  CriticalPathGraph graph;
  /// Edges of the path, the first first.
  std::vector<std::uint32_t> edges;
  /// The sum of their weights.
  std::int64_t length_ns = 0;

  /// No edge leads back to where it came from; without that there is no longest path, and `edges` is empty.
  bool acyclic = true;
  /// No wait between two pieces of work of one stream.
  bool waits_between_streams_only = true;
  bool valid() const noexcept { return acyclic && waits_between_streams_only; }

  /// One row per edge of the path:
  ///
  ///     rank row name category type bound_by start_ns duration_s process thread stream
  ///
  /// `row`, `name`, `category`, `process`, `thread` and `stream` are those of the event that the edge's time
  /// belongs to (-1 and empty if it is nobody's), `start_ns` is the edge's begin on the clock of the file,
  /// `duration_s` its weight. `bound_by` says what would have to be faster: "cpu_bound", "data_loading",
  /// "gpu_compute_bound", "gpu_communication_bound", "gpu_kernel_launch_overhead",
  /// "gpu_kernel_kernel_overhead", "" for edges of no weight of their own.
  Table path;
  /// One row per `bound_by` that has time, the largest first: rank bound_by duration_s duration_pct.
  Table summary;
};

/// The longest path of `critical_path_graph`. Of several paths of one length, one; only the length is unique.
/// Without input the tables are empty and their notes say why.
CriticalPath critical_path(const trace::Trace& trace, const CriticalPathOptions& options = {});

}  // namespace headrace::analysis::device
