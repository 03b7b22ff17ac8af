#include "headrace/analysis/device/critical_path.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/device/callers.h"
#include "analysis/device/critical_path_builder.h"
#include "analysis/device/order.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/kernel_kind.h"

namespace headrace::analysis::device {
namespace {

using trace::kNoRow;
using trace::Row;
using Node = CriticalPathGraph::Node;

constexpr std::uint32_t kNoEdge = ~std::uint32_t{0};

/// Edges by the node that they leave: `edge[first[node]]` to `edge[first[node + 1] - 1]`.
struct Leaving {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> edge;
};

Leaving leaving(const CriticalPathGraph& graph) {
  Leaving result;
  result.first.assign(graph.nodes() + 1, 0);
  for (const Node from : graph.edge_from) ++result.first[from + 1];
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  std::vector<std::uint32_t> next(result.first.begin(), result.first.end());
  result.edge.resize(graph.edges());
  for (std::uint32_t edge = 0; edge < graph.edges(); ++edge)
    result.edge[next[graph.edge_from[edge]]++] = edge;
  return result;
}

/// Relaxes every edge once, in a topological order (Kahn). Fills `edges` and `length_ns`, or leaves `acyclic`
/// false.
void find_longest_path(CriticalPath& result) {
  const CriticalPathGraph& graph = result.graph;
  const Leaving out = leaving(graph);
  std::vector<std::uint32_t> entering(graph.nodes(), 0);
  for (const Node to : graph.edge_to) ++entering[to];
  std::vector<Node> ready;
  ready.reserve(graph.nodes());
  for (Node node = 0; node < graph.nodes(); ++node) {
    if (entering[node] == 0) ready.push_back(node);
  }
  std::vector<std::int64_t> longest_ns(graph.nodes(), 0);
  std::vector<std::uint32_t> by(graph.nodes(), kNoEdge);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Node node = ready[i];
    for (std::uint32_t at = out.first[node]; at < out.first[node + 1]; ++at) {
      const std::uint32_t edge = out.edge[at];
      const Node to = graph.edge_to[edge];
      const std::int64_t length_ns = longest_ns[node] + graph.edge_weight_ns[edge];
      if (by[to] == kNoEdge || length_ns > longest_ns[to]) {
        longest_ns[to] = length_ns;
        by[to] = edge;
      }
      if (--entering[to] == 0) ready.push_back(to);
    }
  }
  result.acyclic = ready.size() == graph.nodes();
  if (!result.acyclic || graph.nodes() == 0) return;

  const auto last = std::max_element(longest_ns.begin(), longest_ns.end());
  result.length_ns = *last;
  for (auto node = static_cast<Node>(last - longest_ns.begin()); by[node] != kNoEdge;) {
    result.edges.push_back(by[node]);
    node = graph.edge_from[by[node]];
  }
  std::reverse(result.edges.begin(), result.edges.end());
}

bool waits_are_between_streams(const trace::Trace& trace, const CriticalPathGraph& graph) {
  for (std::size_t edge = 0; edge < graph.edges(); ++edge) {
    if (graph.edge_type[edge] != EdgeType::sync_dependency) continue;
    const Row from = graph.node_row[graph.edge_from[edge]];
    const Row to = graph.node_row[graph.edge_to[edge]];
    if (!trace::is_device_work(trace.kinds[from]) || !trace::is_device_work(trace.kinds[to])) continue;
    if (stream_of(trace.columns(), from) == stream_of(trace.columns(), to)) return false;
  }
  return true;
}

constexpr std::array<const char*, 7> kBounds = {"",
                                                "cpu_bound",
                                                "data_loading",
                                                "gpu_compute_bound",
                                                "gpu_communication_bound",
                                                "gpu_kernel_launch_overhead",
                                                "gpu_kernel_kernel_overhead"};
enum Bound : std::size_t {
  nothing,
  cpu,
  data_loading,
  compute,
  communication,
  launch_overhead,
  kernel_overhead
};

/// What would have to be faster for an edge to be shorter. `callers` finds ranges that load data.
template <class CallersThatLoad>
Bound bound_of(const trace::Trace& trace, EdgeType type, Row row, CallersThatLoad& callers) {
  if (type == EdgeType::launch_delay) return launch_overhead;
  if (type == EdgeType::kernel_kernel_delay) return kernel_overhead;
  if (type != EdgeType::operator_kernel || row == kNoRow) return nothing;
  if (!trace::is_device_work(trace.kinds[row])) return callers.outermost(row) == kNoRow ? cpu : data_loading;
  const KernelKind kind = kind_of_work(trace.kinds[row], trace.columns().name_of(row));
  return kind == KernelKind::communication ? communication : compute;
}

std::int64_t number_of(Row row) { return row == kNoRow ? trace::kAbsent : std::int64_t{row}; }

/// Fills the two tables.
void describe_path(const trace::Trace& trace, const CriticalPathOptions& options, CriticalPath& result) {
  const trace::Columns& columns = trace.columns();
  const CriticalPathGraph& graph = result.graph;
  const std::vector<bool> loads_data = names_containing(columns, options.data_load_events);
  Callers callers(trace, [&](Row row) { return loads_data[columns.name[row]]; });

  Rows<CriticalPathColumns> path;
  std::array<std::int64_t, kBounds.size()> time_ns{};
  for (const std::uint32_t edge : result.edges) {
    const Row row = graph.edge_row[edge];
    const Bound bound = bound_of(trace, graph.edge_type[edge], row, callers);
    time_ns[bound] += graph.edge_weight_ns[edge];
    const trace::Lane nobody;
    const trace::Lane& lane = row == kNoRow ? nobody : columns.lanes[columns.lane[row]];
    const bool known = row != kNoRow;
    path.add(trace.rank, number_of(row), known ? columns.name_of(row) : std::string_view(),
             known ? columns.category_of(row) : std::string_view(), to_string(graph.edge_type[edge]),
             kBounds[bound], graph.node_time_ns[graph.edge_from[edge]], seconds(graph.edge_weight_ns[edge]),
             lane.process, lane.thread, known ? columns.stream[row] : trace::kAbsent);
  }
  result.path = path.take();

  Rows<CriticalPathSummaryColumns> summary;
  for (const std::size_t bound :
       descending_order(kBounds.size(), [&](std::size_t each) { return time_ns[each]; })) {
    if (time_ns[bound] == 0) break;
    summary.add(trace.rank, kBounds[bound], seconds(time_ns[bound]),
                percent(time_ns[bound], result.length_ns));
  }
  result.summary = summary.take();
}

}  // namespace

Table nodes_table(const CriticalPathGraph& graph) {
  Rows<CriticalPathNodesColumns> rows;
  rows.reserve(graph.nodes());
  for (Node node = 0; node < graph.nodes(); ++node)
    rows.add(graph.node_time_ns[node], number_of(graph.node_row[node]), bool{graph.node_is_start[node] != 0});
  return rows.take();
}

Table edges_table(const CriticalPath& path) {
  const CriticalPathGraph& graph = path.graph;
  std::vector<bool> on_path(graph.edges());
  for (const std::uint32_t edge : path.edges) on_path[edge] = true;
  Rows<CriticalPathEdgesColumns> rows;
  rows.reserve(graph.edges());
  for (std::size_t edge = 0; edge < graph.edges(); ++edge)
    rows.add(graph.edge_from[edge], graph.edge_to[edge], graph.edge_weight_ns[edge],
             to_string(graph.edge_type[edge]), number_of(graph.edge_row[edge]), bool{on_path[edge]});
  return rows.take();
}

CriticalPath critical_path(const trace::Trace& trace, const CriticalPathOptions& options) {
  CriticalPath result;
  result.graph = critical_path_graph(trace, options);
  find_longest_path(result);
  result.waits_between_streams_only = waits_are_between_streams(trace, result.graph);
  describe_path(trace, options, result);
  result.path.notes = result.graph.notes;
  if (!result.acyclic)
    result.path.notes.push_back("rank " + std::to_string(trace.rank) +
                                ": events depend on each other in a circle, so there is no critical path");
  result.summary.notes = result.path.notes;
  return result;
}

}  // namespace headrace::analysis::device
