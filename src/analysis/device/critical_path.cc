#include "headrace/analysis/device/critical_path.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/device/callers.h"
#include "analysis/device/critical_path_builder.h"
#include "analysis/device/order.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::kNoRow;
using trace::Row;
using Node = CriticalPathGraph::Node;

/// Narrows `scope` to the instances of the annotation; a sentence if there are none.
std::string narrow(const trace::Trace& trace, const CriticalPathOptions& options, Scope& scope) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> wanted = names_containing(columns, {options.annotation});
  const Selection selection(trace, scope);
  std::vector<Row> instances;
  for (Row row = 0; row < columns.size(); ++row) {
    const bool on_host = columns.phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
    if (on_host && wanted[columns.name[row]] && selection.has(row)) instances.push_back(row);
  }
  if (options.first_instance > options.last_instance || options.last_instance >= instances.size()) {
    return "rank " + std::to_string(trace.rank) + " has " + std::to_string(instances.size()) +
           " ranges whose name contains '" + options.annotation + "': there are no instances " +
           std::to_string(options.first_instance) + " to " + std::to_string(options.last_instance);
  }
  std::stable_sort(instances.begin(), instances.end(),
                   [&](Row a, Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
  std::int64_t end_ns = scope.begin_ns;
  for (std::size_t i = options.first_instance; i <= options.last_instance; ++i)
    end_ns = std::max(end_ns, columns.end_ns(instances[i]));
  scope.begin_ns = std::max(scope.begin_ns, columns.start_ns[instances[options.first_instance]]);
  scope.end_ns = std::min(scope.end_ns, end_ns);
  return {};
}

bool is_host_event(EventKind kind) noexcept {
  return kind == EventKind::operation || kind == EventKind::runtime;
}

CriticalPathEvents events_of(const trace::Trace& trace, const CriticalPathOptions& options,
                             const Scope& scope) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> loads_data = names_containing(columns, options.data_load_events);
  const Selection selection(trace, scope);
  CriticalPathEvents events;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] != 'X') continue;
    if (trace.kinds[row] == EventKind::synchronisation) {
      if (trace.correlation.launch_of(row) != trace::kNoRow && selection.has(row))
        events.waits.push_back(row);
      continue;
    }
    if (trace::is_on_device(trace.kinds[row]) || columns.duration_ns[row] == 0) continue;
    if (!is_host_event(trace.kinds[row]) && !loads_data[columns.name[row]]) continue;
    if (selection.has(row)) events.host.push_back(row);
  }
  DeviceWork work = device_work(trace, scope);
  std::erase_if(work.work, [&](const Work& each) {
    return each.end_ns == each.start_ns || trace.correlation.launch_of(each.row) == trace::kNoRow;
  });
  events.work = std::move(work.work);
  events.streams = std::move(work.streams);
  std::stable_sort(events.waits.begin(), events.waits.end(),
                   [&](Row a, Row b) { return columns.end_ns(a) < columns.end_ns(b); });
  return events;
}

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

/// Bound of an edge: what must be faster to shorten it. `callers` finds ranges that load data.
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

const char* to_string(EdgeType type) noexcept {
  constexpr std::array kNames = {"operator_kernel", "dependency", "launch_delay", "kernel_kernel_delay",
                                 "sync_dependency"};
  return kNames[static_cast<std::size_t>(type)];
}

std::vector<bool> names_among(const trace::Columns& columns, const std::vector<std::string>& names) {
  std::vector<bool> result(columns.names.size(), false);
  for (const std::string& name : names) {
    const trace::Names::Id id = columns.names.find(name);
    if (id != trace::Names::missing) result[id] = true;
  }
  return result;
}

std::vector<bool> names_containing(const trace::Columns& columns, const std::vector<std::string>& parts) {
  return names_that(columns, [&](std::string_view name) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return name.find(part) != std::string_view::npos; });
  });
}

CriticalPathBuilder::CriticalPathBuilder(const trace::Trace& trace, const CriticalPathEvents& events)
    : trace_(trace),
      start_(trace.columns().size(), CriticalPathGraph::kNoNode),
      end_(trace.columns().size(), CriticalPathGraph::kNoNode) {
  const trace::Columns& columns = trace.columns();
  struct Moment {
    std::int64_t time_ns;
    Row row;
    bool is_start;
  };
  std::vector<Moment> moments;
  moments.reserve(2 * (events.host.size() + events.work.size()));
  const auto add_event = [&](Row row) {
    moments.push_back({columns.start_ns[row], row, true});
    moments.push_back({columns.end_ns(row), row, false});
  };
  for (const Row row : events.host) add_event(row);
  for (const Work& work : events.work) add_event(work.row);
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    return std::tie(a.time_ns, a.row) < std::tie(b.time_ns, b.row);
  });
  for (const Moment& moment : moments) {
    const auto node = static_cast<Node>(graph_.nodes());
    (moment.is_start ? start_ : end_)[moment.row] = node;
    graph_.node_time_ns.push_back(moment.time_ns);
    graph_.node_row.push_back(moment.row);
    graph_.node_is_start.push_back(moment.is_start ? 1 : 0);
  }
  if (moments.empty()) return;
  graph_.begin_ns = moments.front().time_ns;
  graph_.end_ns = moments.back().time_ns;
}

void CriticalPathBuilder::add(Node from, Node to, std::int64_t weight_ns, EdgeType type, Row row) {
  if (time_ns(to) < time_ns(from)) {
    ++graph_.backward;
    return;
  }
  graph_.edge_from.push_back(from);
  graph_.edge_to.push_back(to);
  graph_.edge_weight_ns.push_back(weight_ns);
  graph_.edge_type.push_back(type);
  graph_.edge_row.push_back(row);
}

CriticalPathGraph critical_path_graph(const trace::Trace& trace, const CriticalPathOptions& options) {
  CriticalPathGraph graph;
  Scope scope = options.scope;
  if (!options.annotation.empty()) {
    const std::string problem = narrow(trace, options, scope);
    if (!problem.empty()) {
      graph.notes.push_back(problem);
      return graph;
    }
  }
  const CriticalPathEvents events = events_of(trace, options, scope);
  CriticalPathBuilder builder(trace, events);
  add_runtime_lock(builder, events, options);
  add_call_stacks(builder, events, options);
  add_device(builder, events, options);
  graph = std::move(builder).finish();

  const std::string rank = "rank " + std::to_string(trace.rank);
  const Selection selection(trace, scope);
  graph.notes.insert(graph.notes.end(), selection.notes().begin(), selection.notes().end());
  if (graph.nodes() == 0) graph.notes.push_back(rank + " has no operators, calls or launched work there");
  if (events.work.empty() && graph.nodes() > 0)
    graph.notes.push_back(rank + " has no launched device work there");
  if (events.waits.empty() && !events.work.empty())
    graph.notes.push_back(
        rank +
        ": no synchronisation events, so the host never waits for the device in this graph; "
        "record with enable_cuda_sync_events=True");
  if (graph.backward > 0)
    graph.notes.push_back(rank + ": " + std::to_string(graph.backward) +
                          " dependencies go back in time and are left out");
  return graph;
}

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
