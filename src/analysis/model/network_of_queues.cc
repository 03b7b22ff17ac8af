#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "../handoff_costs.h"
#include "../read/numbers.h"
#include "headrace/analysis/read/interpreter_lock.h"
#include "limits.h"
#include "network_of.h"
#include "pipeline_graph.h"

namespace headrace::analysis {
namespace {

/// Nobody builds a pipeline of more stages; simulating it would take seconds.
constexpr std::size_t kMaxStages = 128;
constexpr int kMaxWorkersOfAll = 2048;
/// More items than this per batch travel several as one, unless workers or short queues need it finer.
constexpr double kTokens = 8;
constexpr double kMaxTokens = 64;
/// Share of the cores that threads of one process fill beside a training step that computes. They come to the next core
/// only through the interpreter lock.
constexpr double kFilledByThreads = 0.8;

bool wait_for_lock(const profile::Profile& profile) {
  return std::any_of(profile.operators.begin(), profile.operators.end(), [](const auto& op) {
    return ratio(op.lock_wait_s.value_or(0), op.busy_s) >= kHardly && op.demand_s > 0;
  });
}

/// As many as the threads and the training step came to, where they share an interpreter lock; at least
/// kFilledByThreads. Measured: another thread gained nothing where they used 0.7 of the cores or more.
double cores_in_reach(const profile::Profile& profile, double cores) {
  const profile::Host& host = profile.host;
  const profile::SinkProfile& sink = profile.sink;
  const double own_s =
      sink.compute_s - sink.compute_core_wait_s.value_or(0) - sink.compute_lock_wait_s.value_or(0);
  const bool computes = own_s > 0 && sink.compute_cpu_s.value_or(0) >= kMostOf * own_s;
  if (!host.gil_share || !host.cpu_share || !(computes || wait_for_lock(profile))) return cores;
  return cores * std::min(1.0, std::max(kFilledByThreads, *host.cpu_share));
}

/// Moves loading out of the training loop's thread: the training loop then takes from a new queue.
void move_beside_sink(PipelineGraph& graph, int workers, int batches) {
  Group group = std::move(graph.sink);
  graph.sink = Group{};
  group.workers = workers;
  const int queue = static_cast<int>(graph.capacity.size());
  graph.capacity.push_back(batches);
  group.outputs.assign(1, {queue, 1});
  graph.sink.inputs.assign(1, {queue, 1});
  graph.groups.push_back(std::move(group));
}

bool runs_in_sink(const PipelineGraph& graph, int index) {
  const std::vector<int>& inside = graph.sink.operators;
  return std::find(inside.begin(), inside.end(), index) != inside.end();
}

bool apply(const Change& change, PipelineGraph& graph, Effects& effects, Network& network) {
  const bool known_op = change.index >= 0 && static_cast<std::size_t>(change.index) < effects.service.size();
  const int workers = std::clamp(change.to, 1, kMaxWorkers);
  switch (change.kind) {
    case Change::Kind::kCapacity:
      if (change.index < 0 || static_cast<std::size_t>(change.index) >= graph.capacity.size()) return false;
      graph.capacity[static_cast<std::size_t>(change.index)] = std::clamp(change.to, 1, kLargestQueue);
      return true;
    case Change::Kind::kPrefetch:
      if (!known_op || !runs_in_sink(graph, change.index)) return false;
      network.receive.cpu_s = std::max(network.receive.cpu_s, kThreadHandoff_s);
      move_beside_sink(graph, 1, std::clamp(change.to, 1, kLargestQueue));
      return true;
    case Change::Kind::kWorkers:
    case Change::Kind::kProcesses:
      if (!known_op || change.to < 1) return false;
      if (runs_in_sink(graph, change.index)) move_beside_sink(graph, workers, 2 * workers);
      if (Group* group = graph.group_of(change.index)) {
        group->workers = workers;
        for (int op : group->operators) {
          const std::size_t each = static_cast<std::size_t>(op);
          effects.in_process[each] = effects.in_process[each] || change.kind == Change::Kind::kProcesses;
        }
        return true;
      }
      return false;
    case Change::Kind::kFreeThreaded:
      effects.free_threaded = change.to != 0;
      return true;
    default:
      return effects.apply(change);
  }
}

class QueueNetwork {
 public:
  QueueNetwork(const profile::Profile& profile, const PipelineGraph& graph, const Effects& effects,
               std::uint64_t seed, Network& network)
      : profile_(profile),
        graph_(graph),
        works_(profile, effects, lock_shares(profile), seed),
        network_(network) {}

  bool build() {
    choose_tokens();
    for (double capacity : graph_.capacity) network_.queues.push_back({tokens_in(capacity, 1)});
    for (const Group& group : graph_.groups) add_stage(group);
    for (const Flow& flow : graph_.sink.inputs) {
      network_.inputs.push_back({flow.queue, std::min(flow.per_batch, tokens_)});
      fit_capacity(flow);
    }
    add_in_sink();
    add_steps();
    return !network_.stages.empty() || !network_.in_sink.empty();
  }

 private:
  /// As coarse as workers and queues allow: each worker holds a token, each queue at least one.
  void choose_tokens() {
    for (const Group& group : graph_.groups) {
      tokens_ = std::max(tokens_, 2.0 * group.workers);
      for (const Flow& flow : group.outputs) {
        tokens_ = std::max(tokens_, flow.per_batch / graph_.capacity[static_cast<std::size_t>(flow.queue)]);
      }
    }
    tokens_ = std::min(tokens_, kMaxTokens);
  }

  int tokens_in(double items, double per_token) const {
    return static_cast<int>(std::clamp(std::round(items / per_token), 1.0, double{kLargestQueue}));
  }

  /// A queue counts what flows through it.
  void fit_capacity(const Flow& flow) {
    const std::size_t at = static_cast<std::size_t>(flow.queue);
    network_.queues[at].capacity = tokens_in(graph_.capacity[at], std::max(1.0, flow.per_batch / tokens_));
  }

  void add_stage(const Group& group) {
    Network::Stage stage;
    stage.workers = group.workers;
    stage.cycles_per_batch = std::min(group.per_batch, tokens_);
    for (const Flow& flow : group.inputs) {
      stage.inputs.push_back({flow.queue, std::min(flow.per_batch, tokens_) / stage.cycles_per_batch});
      fit_capacity(flow);
    }
    for (const Flow& flow : group.outputs) {
      stage.outputs.push_back({flow.queue, std::min(flow.per_batch, tokens_) / stage.cycles_per_batch});
      fit_capacity(flow);
    }
    for (int i : group.operators) {
      const std::vector<profile::Parameter>& parameters =
          profile_.operators[static_cast<std::size_t>(i)].parameters;
      const profile::Parameter* ordered = parameter_that_sets(parameters, profile::Quantity::order);
      stage.ordered = stage.ordered || (ordered != nullptr && ordered->value != 0);
    }
    stage.lock.waited_s = works_.lock_wait_s(group.operators);
    stage.name = works_.largest(group.operators);
    stage.lanes = works_.lanes(group.operators, stage.cycles_per_batch, group.workers);
    network_.stages.push_back(std::move(stage));
  }

  void add_in_sink() {
    const std::vector<int>& operators = graph_.sink.operators;
    if (operators.empty()) return;
    network_.in_sink = works_.lanes(operators, 1, 1).front();
    network_.slowest_in_sink = works_.largest(operators);
  }

  void add_steps() {
    const profile::SinkProfile& sink = profile_.sink;
    const double own_s = std::max(
        0.0, sink.compute_s - sink.compute_lock_wait_s.value_or(read_interpreter_lock(profile_).stretch_s));
    network_.sink_lock.waited_s = works_.lock_wait_s(graph_.sink.operators);
    if (sink.compute_lock_wait_s)
      network_.sink_lock.waited_s = network_.sink_lock.waited_s.value_or(0) + *sink.compute_lock_wait_s;
    std::vector<int> all(profile_.operators.size());
    std::iota(all.begin(), all.end(), 0);
    network_.steps = works_.steps(own_s, all);
  }

  const profile::Profile& profile_;
  const PipelineGraph& graph_;
  CycleWorks works_;
  Network& network_;
  double tokens_ = kTokens;  ///< per batch at most, on every queue
};

}  // namespace

bool network_of_queues(const profile::Profile& profile, const std::vector<Change>& changes, bool ordered,
                       std::uint64_t seed, Network& network) {
  PipelineGraph graph = pipeline_graph(profile);
  network.guessed_queue = graph.guessed_queue;
  network.order_known = false;
  network.receive.cpu_s = profile.sink.handoff_floor_s * profile.sink.ready_share;
  Effects effects(profile.operators.size());
  for (const Change& change : changes) {
    if (!apply(change, graph, effects, network)) return false;
  }
  int workers = 0;
  for (Group& group : graph.groups) {
    group.workers = std::clamp(group.workers, 1, kMaxWorkers);
    workers += group.workers;
  }
  if (graph.groups.size() > kMaxStages || workers > kMaxWorkersOfAll) return false;
  const bool in_processes =
      std::find(effects.in_process.begin(), effects.in_process.end(), true) != effects.in_process.end();
  if (!in_processes && !effects.free_threaded) network.cores = cores_in_reach(profile, network.cores);
  if (!QueueNetwork(profile, graph, effects, seed, network).build()) return false;
  for (Network::Stage& stage : network.stages) {
    stage.ordered = (stage.ordered || ordered) && stage.can_keep_order();
  }
  return true;
}

}  // namespace headrace::analysis
