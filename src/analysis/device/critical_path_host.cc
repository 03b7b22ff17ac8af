#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/device/critical_path_builder.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;
using Node = CriticalPathGraph::Node;

/// For each lane the one whose thread it is shown with: autograd runs the backward pass on a thread of its
/// own while the thread of the forward pass waits for it, so the two are one chain of calls.
std::vector<std::uint32_t> threads_of(const trace::Trace& trace, std::span<const Row> host) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> forward = names_containing(columns, {"forward"});
  const std::vector<bool> autograd = names_containing(columns, {"autograd"});
  std::vector<bool> runs_forward(columns.lanes.size(), false);
  std::vector<bool> runs_autograd(columns.lanes.size(), false);
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
  for (const Row row : host) {
    begin_ns = std::min(begin_ns, columns.start_ns[row]);
    end_ns = std::max(end_ns, columns.end_ns(row));
  }
  // Annotations are not events of the graph, but they tell what a thread does.
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] != EventKind::operation && trace.kinds[row] != EventKind::annotation) continue;
    if (columns.start_ns[row] < begin_ns || columns.start_ns[row] >= end_ns) continue;
    if (forward[columns.name[row]]) runs_forward[columns.lane[row]] = true;
    if (autograd[columns.name[row]]) runs_autograd[columns.lane[row]] = true;
  }
  std::vector<std::uint32_t> threads(columns.lanes.size());
  for (std::uint32_t lane = 0; lane < threads.size(); ++lane) threads[lane] = lane;
  if (std::count(runs_forward.begin(), runs_forward.end(), true) != 1) return threads;
  if (std::count(runs_autograd.begin(), runs_autograd.end(), true) != 1) return threads;
  const auto lane_of = [](const std::vector<bool>& runs) {
    return static_cast<std::uint32_t>(std::find(runs.begin(), runs.end(), true) - runs.begin());
  };
  threads[lane_of(runs_autograd)] = lane_of(runs_forward);
  return threads;
}

/// The calls of one thread after the other, each as it begins and ends.
class ThreadWalk {
 public:
  ThreadWalk(CriticalPathBuilder& builder, const CriticalPathOptions& options)
      : builder_(builder),
        columns_(builder.trace().columns()),
        locks_(names_among(columns_, options.lock_calls)),
        blocks_(names_among(columns_, options.blocking_calls)) {}

  /// Rows come by start, callers before what they call; none without a duration, so whatever ends at `row`'s
  /// start or before ends before `row` does.
  void begin(Row row) {
    while (!open_.empty() && columns_.end_ns(open_.back()) < columns_.end_ns(row)) end_innermost();
    const Node start = builder_.start_of(row);
    if (last_ != CriticalPathGraph::kNoNode && !is_covered_by_lock(start)) {
      if (open_.empty()) {
        builder_.untimed(last_, start, EdgeType::dependency, trace::kNoRow);
      } else {
        builder_.timed(last_, start, EdgeType::operator_kernel, open_.back());
      }
    }
    last_ = start;
    open_.push_back(row);
  }

  void end_thread() {
    while (!open_.empty()) end_innermost();
    last_ = CriticalPathGraph::kNoNode;
  }

 private:
  void end_innermost() {
    const Row row = open_.back();
    open_.pop_back();
    const Node end = builder_.end_of(row);
    if (!is_covered_by_lock(end)) {
      if (blocks_[columns_.name[row]]) {
        builder_.untimed(last_, end, EdgeType::operator_kernel, row);
      } else {
        builder_.timed(last_, end, EdgeType::operator_kernel, row);
      }
    }
    last_ = end;
  }

  bool is_lock(Node node) const { return locks_[columns_.name[builder_.row_of(node)]]; }

  /// Between calls that hold the lock, the lock's own edges say what waits for what; only from the end of one
  /// to the start of the next they say nothing.
  bool is_covered_by_lock(Node next) const {
    if (!is_lock(last_) || !is_lock(next)) return false;
    return builder_.is_start(last_) || !builder_.is_start(next);
  }

  CriticalPathBuilder& builder_;
  const trace::Columns& columns_;
  std::vector<bool> locks_;
  std::vector<bool> blocks_;
  std::vector<Row> open_;
  Node last_ = CriticalPathGraph::kNoNode;
};

}  // namespace

void add_runtime_lock(CriticalPathBuilder& builder, const CriticalPathEvents& events,
                      const CriticalPathOptions& options) {
  const trace::Columns& columns = builder.trace().columns();
  const std::vector<bool> locks = names_among(columns, options.lock_calls);
  std::vector<Node> nodes;
  for (const Row row : events.host) {
    if (!locks[columns.name[row]]) continue;
    nodes.push_back(builder.start_of(row));
    nodes.push_back(builder.end_of(row));
  }
  // A lock is let go before it is taken: at the same moment ends come first.
  std::sort(nodes.begin(), nodes.end(), [&](Node a, Node b) {
    return std::tuple(builder.time_ns(a), builder.is_start(a), a) <
           std::tuple(builder.time_ns(b), builder.is_start(b), b);
  });
  std::vector<Node> waiting;  // starts of calls that have not ended
  Node last_end = CriticalPathGraph::kNoNode;
  for (const Node node : nodes) {
    if (builder.is_start(node)) {
      waiting.push_back(node);
      last_end = CriticalPathGraph::kNoNode;
      continue;
    }
    const Row row = builder.row_of(node);
    const Node own = builder.start_of(row);
    for (const Node start : waiting) {
      if (start == own) {
        builder.timed(start, node, EdgeType::operator_kernel, row);
      } else {
        builder.untimed(start, node, EdgeType::dependency, builder.row_of(start));
      }
    }
    std::erase(waiting, own);
    if (last_end != CriticalPathGraph::kNoNode) builder.untimed(last_end, node, EdgeType::dependency, row);
    last_end = node;
  }
}

void add_call_stacks(CriticalPathBuilder& builder, const CriticalPathEvents& events,
                     const CriticalPathOptions& options) {
  const trace::Columns& columns = builder.trace().columns();
  const std::vector<std::uint32_t> thread = threads_of(builder.trace(), events.host);
  std::vector<Row> rows = events.host;
  const auto key = [&](Row row) {
    return std::tuple(thread[columns.lane[row]], columns.start_ns[row], -columns.duration_ns[row], row);
  };
  std::sort(rows.begin(), rows.end(), [&](Row a, Row b) { return key(a) < key(b); });
  ThreadWalk walk(builder, options);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && thread[columns.lane[rows[i]]] != thread[columns.lane[rows[i - 1]]]) walk.end_thread();
    walk.begin(rows[i]);
  }
  walk.end_thread();
}

}  // namespace headrace::analysis::device
