#include "pipeline_graph.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "../read/numbers.h"
#include "headrace/analysis/read/loader.h"

namespace headrace::analysis {
namespace {

/// Batches that an operator may run ahead per worker, if nothing is known.
constexpr double kGuessedAhead = 2;
constexpr double kUnbounded = 1e6;

/// Items made ahead at the end of a short run are in the counts: 31.6 or 33.1 items a batch are 32.
double whole_where_near(double per_batch) {
  const double whole = std::max(1.0, std::round(per_batch));
  const double near = whole < 2 ? 0.2 : 0.05 * whole;
  return std::abs(per_batch - whole) <= near ? whole : per_batch;
}

double items_per_batch(const profile::OperatorProfile& op) {
  return op.items_per_batch > 0 ? whole_where_near(op.items_per_batch) : 1;
}

class GraphReader {
 public:
  explicit GraphReader(const profile::Profile& profile) : profile_(profile) {}

  PipelineGraph read() {
    find_groups();
    for (std::size_t q = 0; q < profile_.queues.size(); ++q) connect(static_cast<int>(q));
    lead_to_sink();
    return std::move(graph_);
  }

 private:
  static constexpr int kInSink = -1;
  static constexpr int kNowhere = -2;

  void find_groups() {
    std::map<int, int> by_segment;
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      const profile::OperatorProfile& op = profile_.operators[i];
      int at = kNowhere;
      if (op.in_sink) {
        at = kInSink;
      } else if (!runs_in_step(profile_, static_cast<int>(i))) {
        const auto known = op.segment >= 0 ? by_segment.find(op.segment) : by_segment.end();
        at = known != by_segment.end() ? known->second : static_cast<int>(graph_.groups.size());
        if (known == by_segment.end()) graph_.groups.emplace_back();
        if (op.segment >= 0) by_segment[op.segment] = at;
      }
      group_at_.push_back(at);
      if (at == kNowhere) continue;
      Group& group = at == kInSink ? graph_.sink : graph_.groups[static_cast<std::size_t>(at)];
      const double items = items_per_batch(op);
      group.per_batch = group.operators.empty() ? items : std::max(group.per_batch, items);
      group.workers = std::max(group.workers, op.workers);
      group.operators.push_back(static_cast<int>(i));
    }
  }

  /// Groups of these operators, each with the items that it handles there per batch.
  std::map<int, double> groups_of(const std::vector<int>& operators) const {
    std::map<int, double> groups;
    for (int op : operators) {
      const auto i = static_cast<std::size_t>(op);
      if (group_at_[i] == kNowhere) continue;
      double& items = groups[group_at_[i]];
      items = std::max(items, items_per_batch(profile_.operators[i]));
    }
    return groups;
  }

  /// Items per batch through queue `q`: what its operators say, unless its own counters tell otherwise.
  double flow_of(const profile::QueueProfile& queue, const std::map<int, double>& from) const {
    double said = 0;
    for (const auto& [group, items] : from) said += items;
    if (said <= 0) said = 1;
    const double counted =
        ratio(static_cast<double>(queue.puts.value_or(0)), static_cast<double>(profile_.sink.steps));
    const bool agrees = std::abs(counted - said) <= 0.25 * said;
    return counted <= 0 || agrees ? said : whole_where_near(counted);
  }

  void connect(int q) {
    const profile::QueueProfile& queue = profile_.queues[static_cast<std::size_t>(q)];
    graph_.capacity.push_back(queue.capacity > 0 ? static_cast<double>(queue.capacity) : kUnbounded);
    std::map<int, double> from = groups_of(queue.from_operators);
    std::map<int, double> to = groups_of(queue.to_operators);
    const double flow = flow_of(queue, from);
    // Items from the training loop's own thread are there when it asks; a way back to an earlier operator (free
    // buffers) would only be a second way to say how many items there are.
    from.erase(kInSink);
    const bool into_sink = queue.to_sink || to.erase(kInSink) > 0;
    if (!from.empty())
      std::erase_if(to, [&](const auto& each) { return each.first <= from.rbegin()->first; });
    if (from.empty() || (to.empty() && !into_sink)) return;
    add_flows(q, flow, from, &Group::outputs);
    if (into_sink) {
      graph_.sink.inputs.push_back({q, to.empty() ? flow : std::min(flow, 1.0)});
    } else {
      add_flows(q, flow, to, &Group::inputs);
    }
  }

  void add_flows(int q, double flow, const std::map<int, double>& groups, std::vector<Flow> Group::* side) {
    double all = 0;
    for (const auto& [at, items] : groups) all += items;
    for (const auto& [at, items] : groups) {
      (graph_.groups[static_cast<std::size_t>(at)].*side).push_back({q, flow * items / all});
    }
  }

  void lead_to_sink() {
    for (std::size_t g = 0; g < graph_.groups.size(); ++g) {
      Group& group = graph_.groups[g];
      if (!group.outputs.empty()) continue;
      Group* next = &graph_.sink;
      for (std::size_t later = graph_.groups.size(); later > g + 1; --later) {
        if (graph_.groups[later - 1].inputs.empty()) next = &graph_.groups[later - 1];
      }
      const double flow = std::min(group.per_batch, next == &graph_.sink ? 1.0 : next->per_batch);
      graph_.guessed_queue = true;
      graph_.capacity.push_back(std::max(1.0, kGuessedAhead * group.workers * flow));
      const int queue = static_cast<int>(graph_.capacity.size()) - 1;
      group.outputs.push_back({queue, flow});
      next->inputs.push_back({queue, flow});
    }
  }

  const profile::Profile& profile_;
  PipelineGraph graph_;
  std::vector<int> group_at_;  // per operator
};

}  // namespace

Group* PipelineGraph::group_of(int index) {
  for (Group& group : groups) {
    if (std::find(group.operators.begin(), group.operators.end(), index) != group.operators.end()) {
      return &group;
    }
  }
  return nullptr;
}

PipelineGraph pipeline_graph(const profile::Profile& profile) { return GraphReader(profile).read(); }

}  // namespace headrace::analysis
