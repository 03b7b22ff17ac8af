// The chain of events that a part of a trace could not have been shorter than.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/analysis/device/critical_path_graph.h"
#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

using CriticalPathColumns =
    ColumnList<Integer<"rank">, Integer<"row", "The event that the time belongs to; -1: nobody's.">,
               Text<"name">, Text<"category">, Text<"type">,
               Text<"bound_by", "What would have to be faster; empty: an edge of no weight of its own.">,
               Integer<"start_ns">, Number<"duration_s", "The edge's weight.">, Text<"process">,
               Text<"thread">, Integer<"stream">>;
using CriticalPathSummaryColumns =
    ColumnList<Integer<"rank">, Text<"bound_by">, Number<"duration_s">, Number<"duration_pct">>;

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

  /// One row per edge of the path. `bound_by` is "cpu_bound", "data_loading", "gpu_compute_bound",
  /// "gpu_communication_bound", "gpu_kernel_launch_overhead", "gpu_kernel_kernel_overhead" or "".
  Table path;
  /// One row per `bound_by` that has time, the largest first.
  Table summary;
};

using CriticalPathNodesColumns =
    ColumnList<Integer<"time_ns">, Integer<"row", "The event; -1: nobody's.">, Integer<"is_start">>;
using CriticalPathEdgesColumns =
    ColumnList<Integer<"from">, Integer<"to">, Integer<"weight_ns">, Text<"type">,
               Integer<"row", "The event that the time belongs to; -1: nobody's.">, Integer<"on_path">>;

/// The graph; `from` and `to` are rows of the table of nodes.
Table nodes_table(const CriticalPathGraph& graph);
Table edges_table(const CriticalPath& path);

/// The longest path of `critical_path_graph`. Of several paths of one length, one; only the length is unique.
/// Without input the tables are empty and their notes say why.
CriticalPath critical_path(const trace::Trace& trace, const CriticalPathOptions& options = {});

}  // namespace headrace::analysis::device
