#include "headrace/analysis/what_if/pipeline_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "../diagnosis/device_lag.h"
#include "../diagnosis/numbers.h"
#include "../handoff_costs.h"
#include "headrace/analysis/diagnosis/advice.h"
#include "headrace/analysis/diagnosis/demand.h"
#include "headrace/analysis/diagnosis/disturbance.h"
#include "headrace/analysis/diagnosis/interpreter_lock.h"
#include "headrace/analysis/what_if/beside_others.h"
#include "limits.h"
#include "pipeline_graph.h"
#include "recorded_batches.h"
#include "repeat.h"
#include "training_step.h"

namespace headrace::analysis {
namespace {

/// Nobody builds a pipeline of more stages; simulating it would take seconds.
constexpr std::size_t kMostStages = 128;
constexpr int kMostWorkersOfAll = 2048;
/// More items than this per batch travel several as one, unless workers or short queues need it finer.
constexpr double kTokens = 8;
constexpr double kMostTokens = 64;
constexpr std::size_t kMostCycles = 2048;
constexpr std::size_t kComposedCycles = 512;
/// Cycles of all stages in one run: as long as that, whatever the batch size.
constexpr double kCyclesPerRun = 6000;
constexpr int kFewestBatchesPerRun = 60;
constexpr int kMostBatchesPerRun = 200;
/// Of the cores: what threads of one process fill beside a training step that computes. They come to the next core
/// only through the interpreter lock.
constexpr double kFilledByThreads = 0.8;
/// Of its time: a training step that computes.
constexpr double kStepComputes = 0.5;
/// Of an operator's time: its threads come to a core through the lock, too.
constexpr double kWaitsForLock = 0.1;
/// Probes that find the lock taken by chance.
constexpr double kLockSeen = 0.1;
/// Of its CPU time: even C code that releases the lock at once needs it for each call.
constexpr double kLeastHeld = 0.01;
/// Code that holds it for so much computes in Python, and gives it up only when it is asked to.
constexpr double kAlwaysHeld = 0.7;

/// How much of their CPU time the threads of the sink's process hold its interpreter lock.
struct LockShares {
  std::vector<double> of_cpu;  ///< per operator: share of its CPU time that is spent holding it
  double of_step_cpu = 0;      ///< the same of the training step
  double waiters = 0;  ///< threads that a holder keeps waiting, on average; 0 where their waits are known
};

/// The same share for everybody who needs it, where nothing tells who holds it.
double held_of_cpu(const profile::Profile& profile, const InterpreterLock& lock) {
  if (lock.lock_share < 0) return lock.contended ? 1 : 0;
  if (lock.lock_share < kLockSeen && !lock.contended) return 0;
  double cpu_s = profile.sink.compute_cpu_s.value_or(0);
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor != profile::Executor::process) cpu_s += cpu_per_batch_s(op);
  }
  const double held_s = std::min(lock.lock_share, std::max(lock.process_cores, 0.0)) * profile.sink.step_s;
  return std::min(1.0, ratio(held_s, cpu_s));
}

LockShares lock_shares(const profile::Profile& profile) {
  const InterpreterLock lock = read_interpreter_lock(profile);
  const double usual = held_of_cpu(profile, lock);
  const auto share = [](double held_s, std::optional<double> cpu_s) {
    const double held = ratio(held_s, cpu_s.value_or(0));
    return held >= kAlwaysHeld ? 1 : std::max(kLeastHeld, held);
  };
  LockShares use;
  if (lock.contended && lock.waiting < 0) use.waiters = std::max(0.0, lock.busy_threads - 1);
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    const bool in_process = op.executor == profile::Executor::process;
    use.of_cpu.push_back(op.lock_held_s && !in_process ? share(*op.lock_held_s, op.cpu_s)
                         : lock.needed[i]              ? usual
                                                       : 0);
  }
  const profile::SinkProfile& sink = profile.sink;
  use.of_step_cpu = sink.compute_lock_held_s ? share(*sink.compute_lock_held_s, sink.compute_cpu_s) : usual;
  return use;
}

/// Waiting for the lock is what a simulation adds by itself. of_cpu: see LockShares.
Work under_lock(const Work& work, double of_cpu, double waiters) {
  const double locked_s = of_cpu * work.cpu_s;
  const double waited_s = std::min(work.off_s, locked_s * waiters);
  return {work.off_s - waited_s, work.cpu_s - locked_s, locked_s};
}

bool wait_for_lock(const profile::Profile& profile) {
  return std::any_of(profile.operators.begin(), profile.operators.end(), [](const auto& op) {
    return ratio(op.lock_wait_s.value_or(0), op.busy_s) >= kWaitsForLock && op.demand_s > 0;
  });
}

/// As many as the threads and the training step came to, where they share an interpreter lock; at least
/// kFilledByThreads. Measured: another thread gained nothing where they used 0.7 of the cores or more.
double cores_in_reach(const profile::Profile& profile, double cores) {
  const profile::Host& host = profile.host;
  const profile::SinkProfile& sink = profile.sink;
  const double own_s =
      sink.compute_s - sink.compute_core_wait_s.value_or(0) - sink.compute_lock_wait_s.value_or(0);
  const bool computes = own_s > 0 && sink.compute_cpu_s.value_or(0) >= kStepComputes * own_s;
  if (!host.gil_share || !host.cpu_share || !(computes || wait_for_lock(profile))) return cores;
  return cores * std::min(1.0, std::max(kFilledByThreads, *host.cpu_share));
}

/// What the changes come down to, per operator.
struct PipelineEffects {
  std::vector<double> service;
  std::vector<bool> alike;
  std::vector<bool> in_process;
  bool free_threaded = false;
};

/// What takes loading out of the training loop's thread: the training loop then takes from a new queue.
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

bool apply(const Change& change, PipelineGraph& graph, PipelineEffects& effects, PipelineModel& model) {
  const bool known_op = change.index >= 0 && static_cast<std::size_t>(change.index) < effects.service.size();
  const std::size_t at = known_op ? static_cast<std::size_t>(change.index) : 0;
  const int workers = std::clamp(change.to, 1, kMostWorkers);
  switch (change.kind) {
    case Change::Kind::kCapacity:
      if (change.index < 0 || static_cast<std::size_t>(change.index) >= graph.capacity.size()) return false;
      graph.capacity[static_cast<std::size_t>(change.index)] = std::clamp(change.to, 1, kLargestQueue);
      return true;
    case Change::Kind::kPrefetch:
      if (!known_op || !runs_in_sink(graph, change.index)) return false;
      model.receive.cpu_s = std::max(model.receive.cpu_s, kThreadHandoff_s);
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
    case Change::Kind::kAlike:
    case Change::Kind::kService:
      if (!known_op) return false;
      if (change.kind == Change::Kind::kAlike) {
        effects.alike[at] = true;
      } else {
        effects.service[at] *= std::max(0.0, change.factor);
      }
      return true;
    case Change::Kind::kFreeThreaded:
      effects.free_threaded = change.to != 0;
      return true;
    case Change::Kind::kWindow:
    case Change::Kind::kOrder:
      return false;
  }
  return false;
}

class ModelBuilder {
 public:
  ModelBuilder(const profile::Profile& profile, const PipelineGraph& graph, const PipelineEffects& effects,
               std::uint64_t seed, PipelineModel& model)
      : profile_(profile),
        graph_(graph),
        effects_(effects),
        lock_(lock_shares(profile)),
        demands_(own_demands(profile)),
        random_(seed),
        model_(model) {}

  bool build() {
    choose_tokens();
    for (double capacity : graph_.capacity) model_.queues.push_back({tokens_in(capacity, 1)});
    for (const Group& group : graph_.groups) add_stage(group);
    for (const Flow& flow : graph_.sink.inputs) {
      model_.inputs.push_back({flow.queue, std::min(flow.per_batch, tokens_)});
      fit_capacity(flow);
    }
    add_in_sink();
    add_steps();
    return !model_.stages.empty() || !model_.in_sink.empty();
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
    tokens_ = std::min(tokens_, kMostTokens);
  }

  int tokens_in(double items, double per_token) const {
    return static_cast<int>(std::clamp(std::round(items / per_token), 1.0, double{kLargestQueue}));
  }

  /// A queue counts what flows through it.
  void fit_capacity(const Flow& flow) {
    const std::size_t at = static_cast<std::size_t>(flow.queue);
    model_.queues[at].capacity = tokens_in(graph_.capacity[at], std::max(1.0, flow.per_batch / tokens_));
  }

  void add_stage(const Group& group) {
    PipelineModel::Stage stage;
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
    double largest_s = -1;
    for (int i : group.operators) {
      const std::size_t at = static_cast<std::size_t>(i);
      const profile::OperatorProfile& op = profile_.operators[at];
      const profile::Knob* ordered = parameter_that_sets(op.knobs, profile::Quantity::order);
      stage.ordered = stage.ordered || (ordered != nullptr && ordered->value != 0);
      add_lock_wait(i, stage.lock);
      const double takes_s = demands_[at] * op.workers * effects_.service[at];
      if (takes_s <= largest_s) continue;
      largest_s = takes_s;
      stage.name = op.name;
    }
    stage.lanes = lanes_of(group.operators, stage.cycles_per_batch, group.workers);
    model_.stages.push_back(std::move(stage));
  }

  void add_lock_wait(int index, LockUse& use) const {
    const auto at = static_cast<std::size_t>(index);
    const profile::OperatorProfile& op = profile_.operators[at];
    if (!op.lock_wait_s || demands_[at] <= 0) return;
    use.waited_s = use.waited_s.value_or(0) + demands_[at] * op.workers * ratio(*op.lock_wait_s, op.busy_s);
  }

  void add_in_sink() {
    const std::vector<int>& operators = graph_.sink.operators;
    if (operators.empty()) return;
    model_.in_sink = lanes_of(operators, 1, 1).front();
    double largest_s = -1;
    for (int i : operators) {
      const std::size_t at = static_cast<std::size_t>(i);
      if (demands_[at] * effects_.service[at] <= largest_s) continue;
      largest_s = demands_[at] * effects_.service[at];
      model_.slowest_in_sink = profile_.operators[at].name;
    }
  }

  void add_steps() {
    const profile::SinkProfile& sink = profile_.sink;
    const double own_s = std::max(
        0.0, sink.compute_s - sink.compute_lock_wait_s.value_or(read_interpreter_lock(profile_).stretch_s));
    model_.device_s = device_behind_s(sink);
    model_.sink_lock.waited_s = sink.compute_lock_wait_s;
    for (int i : graph_.sink.operators) add_lock_wait(i, model_.sink_lock);
    for (const Work& step : training_steps(sink, own_s, queue_share_of_step(), profile_.host)) {
      model_.steps.push_back(in_thread(step, lock_.of_step_cpu, true));
    }
  }

  /// Waiting for a core, per CPU time, of the operators: the training step waits like that too.
  double queue_share_of_step() const {
    double cpu_s = 0;
    double queued_s = 0;
    for (const profile::OperatorProfile& op : profile_.operators) {
      const TimeSplit split = split_of(op, profile_.host);
      cpu_s += split.cpu_share * op.busy_s;
      queued_s += split.queue_share * op.busy_s;
    }
    const profile::SinkProfile& sink = profile_.sink;
    const double cpu_share = std::min(1.0, ratio(sink.compute_cpu_s.value_or(0), sink.compute_s));
    return std::min(1 - cpu_share, cpu_share * ratio(queued_s, cpu_s));
  }

  /// One operator's part in the cycles of its threads.
  struct Part {
    RecordedBatches works;
    double per_cycle = 1;    ///< below 1: it takes part in every so manieth
    double kept = 1;         ///< of its time: its inputs' left out
    double held_of_cpu = 0;  ///< the interpreter lock
    bool in_process = false;
  };

  std::vector<WorkSequence> lanes_of(const std::vector<int>& operators, double cycles_per_batch,
                                     int workers) {
    std::vector<Part> parts;
    std::size_t count = 1;
    std::size_t length = 0;
    bool composes = false;
    for (int i : operators) {
      const std::size_t at = static_cast<std::size_t>(i);
      const profile::OperatorProfile& op = profile_.operators[at];
      if (demands_[at] <= 0) continue;
      const double items = op.items_per_batch > 0 ? op.items_per_batch : 1;
      const double per_cycle = items / cycles_per_batch;
      // 31.6 items a batch are 32 that take a little less time each.
      const double whole = per_cycle > 0.8 ? std::max(1.0, std::round(per_cycle)) : per_cycle;
      Part part{
          RecordedBatches(op, profile_.host, std::max(1.0, whole), effects_.service[at], effects_.alike[at]),
          per_cycle, ratio(demands_[at], op.demand_s) * (whole >= 1 ? per_cycle / whole : 1),
          lock_.of_cpu[at], effects_.in_process[at]};
      count = std::max(count, part.works.lanes());
      composes = composes || !part.works.whole();
      length = std::max(length, static_cast<std::size_t>(static_cast<double>(part.works.length()) /
                                                         std::min(1.0, part.per_cycle)));
      parts.push_back(std::move(part));
    }
    count = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, workers)));
    if (composes) length = std::max(length, kComposedCycles / count);
    length = std::clamp<std::size_t>(length, 1, std::max<std::size_t>(8, kMostCycles / count));
    std::vector<WorkSequence> lanes(count, WorkSequence(length));
    for (std::size_t lane = 0; lane < count; ++lane) {
      for (std::size_t number = 0; number < length; ++number) {
        for (const Part& part : parts) lanes[lane][number] += in_cycle(part, lane, number);
      }
    }
    return lanes;
  }

  Work in_cycle(const Part& part, std::size_t lane, std::size_t number) {
    std::size_t at = number;
    if (part.per_cycle < 0.8) {
      const double before = std::floor(static_cast<double>(number) * part.per_cycle + 1e-9);
      const double after = std::floor(static_cast<double>(number + 1) * part.per_cycle + 1e-9);
      if (after <= before) return {};
      at = static_cast<std::size_t>(before);
    }
    return in_thread(part.works.batch(lane, at, random_) * part.kept, part.held_of_cpu, !part.in_process);
  }

  /// What waited for the lock and no longer takes it does not wait: a process has a lock of its own.
  Work in_thread(const Work& work, double held_of_cpu, bool locks) const {
    const Work locked = under_lock(work, held_of_cpu, lock_.waiters);
    const bool shares = locks && !effects_.free_threaded;
    return shares ? locked : Work{locked.off_s, locked.cpu_s + locked.locked_s};
  }

  const profile::Profile& profile_;
  const PipelineGraph& graph_;
  const PipelineEffects& effects_;
  const LockShares lock_;
  const std::vector<double> demands_;
  RecordedBatches::Random random_;
  PipelineModel& model_;
  double tokens_ = kTokens;  ///< per batch at most, on every queue
};

}  // namespace

bool PipelineModel::Stage::can_keep_order() const noexcept {
  return workers > 1 && outputs.size() == 1 && std::abs(outputs.front().tokens - 1) < 1e-6;
}

double PipelineModel::variation() const {
  double most = variation_of({steps});
  for (const Stage& stage : stages) {
    most = std::max(most, variation_of(stage.lanes) / std::sqrt(std::max(1.0, stage.cycles_per_batch)));
  }
  return in_sink.empty() ? most : std::max(most, variation_of({in_sink}));
}

int PipelineModel::batches() const noexcept {
  double cycles = 1;
  for (const Stage& stage : stages) cycles += stage.cycles_per_batch;
  return static_cast<int>(
      std::clamp(kCyclesPerRun / cycles, double{kFewestBatchesPerRun}, double{kMostBatchesPerRun}));
}

std::size_t PipelineModel::recorded() const noexcept {
  std::size_t longest = steps.size();
  for (const Stage& stage : stages) longest = std::max(longest, stage.lanes.front().size());
  return std::max(longest, in_sink.size());
}

void PipelineModel::draw_again(std::mt19937_64& random) {
  for (Stage& stage : stages) analysis::draw_again(stage.lanes, random);
  std::vector<WorkSequence> alone{std::move(steps), std::move(in_sink)};
  analysis::draw_again(alone, random);
  steps = std::move(alone[0]);
  in_sink = std::move(alone[1]);
}

bool make_pipeline_model(const profile::Profile& profile, const std::vector<Change>& changes, bool ordered,
                         std::uint64_t seed, PipelineModel& model) {
  model = PipelineModel{};
  if (profile.sink.step_s <= 0 || profile.operators.empty()) return false;
  PipelineGraph graph = pipeline_graph(profile);
  model.guessed_queue = graph.guessed_queue;
  model.cores = free_cores(profile.host, kMostWorkers).held;
  model.pool_cpu_s = pool_work_s(profile);
  model.receive.cpu_s = profile.sink.handoff_floor_s * profile.sink.ready_share;
  PipelineEffects effects;
  effects.service.assign(profile.operators.size(), 1);
  effects.alike.assign(profile.operators.size(), false);
  effects.in_process.assign(profile.operators.size(), false);
  for (const Change& change : changes) {
    if (!apply(change, graph, effects, model)) return false;
  }
  int workers = 0;
  for (Group& group : graph.groups) {
    group.workers = std::clamp(group.workers, 1, kMostWorkers);
    workers += group.workers;
  }
  if (graph.groups.size() > kMostStages || workers > kMostWorkersOfAll) return false;
  const bool in_processes =
      std::find(effects.in_process.begin(), effects.in_process.end(), true) != effects.in_process.end();
  if (!in_processes && !effects.free_threaded) model.cores = cores_in_reach(profile, model.cores);
  if (!ModelBuilder(profile, graph, effects, seed, model).build()) return false;
  for (PipelineModel::Stage& stage : model.stages) {
    stage.ordered = (stage.ordered || ordered) && stage.can_keep_order();
  }
  return true;
}

}  // namespace headrace::analysis
