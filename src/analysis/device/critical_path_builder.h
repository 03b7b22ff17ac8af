// Grows the graph of a critical path: what the host's part and the device's part have in common.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/device/critical_path_graph.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

/// The events of the part of the trace that is looked at.
struct CriticalPathEvents {
  /// Operators, calls of the runtime, ranges that load data; none with zero duration.
  std::vector<trace::Row> host;
  /// Work that was launched in that part, by start; none with zero duration.
  std::vector<Work> work;
  std::vector<Stream> streams;
  /// Waits on the device's rows, by end.
  std::vector<trace::Row> waits;
};

class CriticalPathBuilder {
 public:
  using Node = CriticalPathGraph::Node;

  CriticalPathBuilder(const trace::Trace& trace, const CriticalPathEvents& events);

  /// kNoNode if the row is not an event of the graph.
  Node start_of(trace::Row row) const noexcept { return start_[row]; }
  Node end_of(trace::Row row) const noexcept { return end_[row]; }
  std::int64_t time_ns(Node node) const noexcept { return graph_.node_time_ns[node]; }
  trace::Row row_of(Node node) const noexcept { return graph_.node_row[node]; }
  bool is_start(Node node) const noexcept { return graph_.node_is_start[node] != 0; }

  /// Weighs as much as the time between the nodes.
  void timed(Node from, Node to, EdgeType type, trace::Row row) {
    add(from, to, time_ns(to) - time_ns(from), type, row);
  }
  /// Weighs nothing.
  void untimed(Node from, Node to, EdgeType type, trace::Row row) { add(from, to, 0, type, row); }

  const trace::Trace& trace() const noexcept { return trace_; }
  CriticalPathGraph finish() && { return std::move(graph_); }

 private:
  void add(Node from, Node to, std::int64_t weight_ns, EdgeType type, trace::Row row);

  const trace::Trace& trace_;
  CriticalPathGraph graph_;
  std::vector<Node> start_;
  std::vector<Node> end_;
};

/// One entry per name of the trace: whether it is one of `names`.
std::vector<bool> names_among(const trace::Columns& columns, const std::vector<std::string>& names);
/// Whether it contains one of `parts`.
std::vector<bool> names_containing(const trace::Columns& columns, const std::vector<std::string>& parts);

void add_runtime_lock(CriticalPathBuilder& builder, const CriticalPathEvents& events,
                      const CriticalPathOptions& options);
void add_call_stacks(CriticalPathBuilder& builder, const CriticalPathEvents& events,
                     const CriticalPathOptions& options);
void add_device(CriticalPathBuilder& builder, const CriticalPathEvents& events,
                const CriticalPathOptions& options);

}  // namespace headrace::analysis::device
