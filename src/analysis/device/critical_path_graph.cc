#include "headrace/analysis/device/critical_path_graph.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/device/critical_path_builder.h"
#include "analysis/device/names_that.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

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

}  // namespace headrace::analysis::device
