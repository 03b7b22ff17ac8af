#include "headrace/analysis/what_if/pipeline_run.h"

#include <algorithm>
#include <deque>
#include <set>

#include "headrace/analysis/what_if/device_queue.h"
#include "headrace/analysis/what_if/engine.h"
#include "headrace/analysis/what_if/task.h"
#include "limits.h"

namespace headrace::analysis {
namespace {

/// Rates that no recording has could keep a run going for ever.
constexpr int kMostEvents = 4'000'000;

class PipelineRun {
 public:
  PipelineRun(const PipelineModel& model, int batches, std::uint64_t first)
      : model_(model),
        engine_(model.cores),
        device_(model.device_s),
        first_(first),
        queues_(model.queues.size()) {
    for (std::size_t s = 0; s < model.stages.size(); ++s) {
      orders_.emplace_back();
      taken_.push_back(0);
      busy_s_.push_back(0);
      if (model.stages[s].ordered) {
        queues_[static_cast<std::size_t>(model.stages[s].outputs.front().queue)].ordered = true;
      }
      for (int w = 0; w < model.stages[s].workers; ++w) {
        Worker& worker = workers_.emplace_back();
        worker.stage = s;
        worker.lane = static_cast<std::size_t>(w);
        worker.took.resize(model.stages[s].inputs.size());
        worker.made.resize(model.stages[s].outputs.size());
      }
    }
    took_.resize(model.inputs.size());
    double buffered = 0;
    for (const PipelineModel::Edge& edge : model.inputs) {
      buffered += model.queues[static_cast<std::size_t>(edge.queue)].capacity / std::max(edge.tokens, 0.01);
    }
    settle_ = static_cast<int>(std::min<double>(kLongestSettle, kSettle + 2 * buffered));
    steps_ = settle_ + batches;
  }

  SimulatedPipeline run() {
    for (std::size_t w = 0; w < workers_.size(); ++w) runnable_.push_back(actor_of(w));
    runnable_.push_back(kSink);
    for (int events = 0; done_ < steps_ && events < kMostEvents; ++events) {
      if (!runnable_.empty()) {
        const int actor = runnable_.front();
        runnable_.pop_front();
        resume(actor);
        continue;
      }
      const int actor = engine_.next();
      if (actor < 0) break;
      resume(actor);
    }
    return figures();
  }

 private:
  static constexpr int kLongestSettle = 120;

  enum class Phase { kBegin, kTake, kWork, kOrder, kPut };
  enum class Sink { kCall, kTake, kServe, kPool, kStep, kDevice };

  /// Tokens still to pass over one edge: fractions add up over the cycles.
  struct Debt {
    double fraction = 0;
    int tokens = 0;

    void add(double more) {
      fraction += more;
      tokens = static_cast<int>(fraction + 1e-9);
      fraction -= tokens;
    }
  };

  struct Worker {
    std::size_t stage = 0;
    std::size_t lane = 0;
    std::size_t cycle = 0;
    std::uint64_t number = 0;  ///< of its cycle, in the order in which the stage took
    Phase phase = Phase::kBegin;
    double since_s = 0;
    std::vector<Debt> took, made;
    Task task;
  };

  struct Queue {
    int level = 0;
    bool ordered = false;
    std::deque<int> getters, putters;
  };

  /// Cycles that are done before older ones.
  struct Order {
    std::uint64_t next = 0;  ///< the oldest that is not
    std::set<std::uint64_t> arrived;
  };

  static constexpr int kSink = 0;
  static int actor_of(std::size_t worker) { return static_cast<int>(worker) + 1; }

  void wake(std::deque<int>& waiting) {
    if (waiting.empty()) return;
    runnable_.push_back(waiting.front());
    waiting.pop_front();
  }

  /// False: the actor waits at a queue that is empty.
  bool take(int actor, const std::vector<PipelineModel::Edge>& edges, std::vector<Debt>& debts) {
    for (std::size_t e = 0; e < edges.size(); ++e) {
      Queue& queue = queues_[static_cast<std::size_t>(edges[e].queue)];
      for (; debts[e].tokens > 0; --debts[e].tokens) {
        if (queue.level == 0) {
          queue.getters.push_back(actor);
          return false;
        }
        --queue.level;
        // Who may put next in an ordered queue is not who has waited longest.
        do wake(queue.putters);
        while (queue.ordered && !queue.putters.empty());
      }
    }
    return true;
  }

  /// False: the actor waits at a queue that is full.
  bool put(int actor, const std::vector<PipelineModel::Edge>& edges, std::vector<Debt>& debts) {
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::size_t at = static_cast<std::size_t>(edges[e].queue);
      Queue& queue = queues_[at];
      for (; debts[e].tokens > 0; --debts[e].tokens) {
        if (queue.level >= model_.queues[at].capacity) {
          queue.putters.push_back(actor);
          return false;
        }
        ++queue.level;
        wake(queue.getters);
      }
    }
    return true;
  }

  void resume(int actor) {
    if (actor == kSink) {
      resume_sink();
    } else {
      resume_worker(static_cast<std::size_t>(actor - 1));
    }
  }

  void resume_worker(std::size_t w) {
    Worker& worker = workers_[w];
    const PipelineModel::Stage& stage = model_.stages[worker.stage];
    const int actor = actor_of(w);
    for (;;) {
      switch (worker.phase) {
        case Phase::kBegin:
          for (std::size_t e = 0; e < stage.inputs.size(); ++e) worker.took[e].add(stage.inputs[e].tokens);
          worker.phase = Phase::kTake;
          break;
        case Phase::kTake:
          if (!take(actor, stage.inputs, worker.took)) return;
          worker.number = taken_[worker.stage]++;
          worker.since_s = engine_.now();
          worker.task.set(work_of(worker), stage.lock.turns);
          worker.phase = Phase::kWork;
          break;
        case Phase::kWork:
          if (worker.task.go_on(engine_, actor)) return;
          if (settled()) busy_s_[worker.stage] += engine_.now() - std::max(worker.since_s, settled_s_);
          for (std::size_t e = 0; e < stage.outputs.size(); ++e) worker.made[e].add(stage.outputs[e].tokens);
          worker.phase = stage.ordered ? Phase::kOrder : Phase::kPut;
          break;
        case Phase::kOrder:
          if (!put_in_place(actor, stage, worker)) return;
          worker.phase = Phase::kBegin;
          break;
        case Phase::kPut:
          if (!put(actor, stage.outputs, worker.made)) return;
          worker.phase = Phase::kBegin;
          break;
      }
    }
  }

  /// Item n may lie n places behind the one that is taken next. False: its place is still taken.
  bool put_in_place(int actor, const PipelineModel::Stage& stage, const Worker& worker) {
    const std::size_t at = static_cast<std::size_t>(stage.outputs.front().queue);
    Queue& queue = queues_[at];
    Order& order = orders_[worker.stage];
    const std::uint64_t consumed = order.next - static_cast<std::uint64_t>(queue.level);
    if (worker.number >= consumed + static_cast<std::uint64_t>(model_.queues[at].capacity)) {
      queue.putters.push_back(actor);
      return false;
    }
    order.arrived.insert(worker.number);
    while (order.arrived.erase(order.next) > 0) {
      ++order.next;
      ++queue.level;
      wake(queue.getters);
    }
    return true;
  }

  const Work& work_of(Worker& worker) const {
    const auto& lanes = model_.stages[worker.stage].lanes;
    const std::vector<Work>& lane = lanes[worker.lane % lanes.size()];
    // Workers beyond those that were recorded go on where another one's record has its second half.
    const std::size_t shift = worker.lane / lanes.size() * lane.size() / 2;
    return lane[(first_ + worker.cycle++ + shift) % lane.size()];
  }

  void resume_sink() {
    for (;;) {
      switch (sink_) {
        case Sink::kCall:
          called_s_ = engine_.now();
          for (std::size_t e = 0; e < took_.size(); ++e) took_[e].add(model_.inputs[e].tokens);
          sink_ = Sink::kTake;
          break;
        case Sink::kTake:
          if (!take(kSink, model_.inputs, took_)) return;
          served_since_s_ = engine_.now();
          sink_task_.set(serving(), model_.sink_lock.turns);
          sink_ = Sink::kServe;
          break;
        case Sink::kServe:
          if (sink_task_.go_on(engine_, kSink)) return;
          if (settled()) {
            serve_s_ += engine_.now() - served_since_s_;
            wait_s_ += engine_.now() - called_s_;
          }
          sink_ = Sink::kPool;
          break;
        case Sink::kPool:
          // What the pool computes may take until the next step begins.
          if (engine_.pool_computes()) return engine_.await_pool(kSink);
          if (model_.pool_cpu_s > 0) engine_.compute_in_pool(model_.pool_cpu_s);
          step_since_s_ = engine_.now();
          sink_task_.set(model_.steps[(first_ + static_cast<std::size_t>(done_)) % model_.steps.size()],
                         model_.sink_lock.turns);
          sink_ = Sink::kStep;
          break;
        case Sink::kStep:
          if (sink_task_.go_on(engine_, kSink)) return;
          sink_ = Sink::kDevice;
          // Room for the next step in the device's queue.
          if (const double wait_s = device_.put(step_since_s_, engine_.now()); wait_s > 0) {
            sink_task_.set({wait_s, 0});
          }
          break;
        case Sink::kDevice:
          if (sink_task_.go_on(engine_, kSink)) return;
          if (++done_ == settle_) settle();
          if (done_ >= steps_) return;
          sink_ = Sink::kCall;
          break;
      }
    }
  }

  Work serving() const {
    Work work = model_.receive;
    if (!model_.in_sink.empty()) {
      work += model_.in_sink[(first_ + static_cast<std::size_t>(done_)) % model_.in_sink.size()];
    }
    return work;
  }

  bool settled() const { return done_ >= settle_; }
  void settle() {
    settled_s_ = engine_.now();
    computed_before_s_ = engine_.computed_s();
    locked_before_s_ = engine_.locked_s();
    lock_waited_before_s_ = lock_waits();
  }

  /// Of each stage, and of the training loop behind them.
  std::vector<double> lock_waits() const {
    std::vector<double> waits(model_.stages.size() + 1, 0);
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      waits[workers_[w].stage] += engine_.lock_wait_s(actor_of(w));
    }
    waits.back() = engine_.lock_wait_s(kSink);
    return waits;
  }

  SimulatedPipeline figures() const {
    SimulatedPipeline run;
    run.busy.assign(model_.stages.size(), 0);
    run.lock_waited_s.assign(model_.stages.size(), 0);
    const double time_s = engine_.now() - settled_s_;
    if (done_ < steps_ || time_s <= 0) return run;
    run.step_s = time_s / (steps_ - settle_);
    run.wait_share = wait_s_ / time_s;
    run.serve_share = serve_s_ / time_s;
    run.cpu_share = (engine_.computed_s() - computed_before_s_) / time_s / model_.cores;
    run.lock_share = (engine_.locked_s() - locked_before_s_) / time_s;
    for (std::size_t s = 0; s < run.busy.size(); ++s) run.busy[s] = busy_s_[s];
    for (const Worker& worker : workers_) {
      if (worker.phase != Phase::kWork) continue;
      run.busy[worker.stage] += engine_.now() - std::max(worker.since_s, settled_s_);
    }
    for (std::size_t s = 0; s < run.busy.size(); ++s) run.busy[s] /= time_s * model_.stages[s].workers;
    const std::vector<double> waits = lock_waits();
    const auto per_batch_s = [&](std::size_t at) {
      return (waits[at] - lock_waited_before_s_[at]) / (steps_ - settle_);
    };
    for (std::size_t s = 0; s < run.busy.size(); ++s) run.lock_waited_s[s] = per_batch_s(s);
    run.sink_lock_waited_s = per_batch_s(run.busy.size());
    return run;
  }

  const PipelineModel& model_;
  Engine engine_;
  DeviceQueue device_;
  std::size_t first_;
  std::vector<Queue> queues_;
  std::vector<Worker> workers_;
  std::vector<Order> orders_;         // per stage
  std::vector<std::uint64_t> taken_;  // cycles begun, per stage
  std::vector<double> busy_s_;        // per stage
  std::vector<Debt> took_;            // of the training loop
  std::deque<int> runnable_;          // may go on now
  Sink sink_ = Sink::kCall;
  Task sink_task_;
  int done_ = 0, settle_ = 0, steps_ = 0;
  double called_s_ = 0, served_since_s_ = 0, step_since_s_ = 0, settled_s_ = 0, computed_before_s_ = 0,
         locked_before_s_ = 0;
  double wait_s_ = 0, serve_s_ = 0;
  std::vector<double> lock_waited_before_s_;
};

}  // namespace

void SimulatedPipeline::add(const SimulatedPipeline& run, double part) {
  step_s += part * run.step_s;
  wait_share += part * run.wait_share;
  serve_share += part * run.serve_share;
  cpu_share += part * run.cpu_share;
  lock_share += part * run.lock_share;
  busy.resize(run.busy.size());
  lock_waited_s.resize(run.busy.size());
  for (std::size_t s = 0; s < busy.size(); ++s) {
    busy[s] += part * run.busy[s];
    lock_waited_s[s] += part * run.lock_waited_s[s];
  }
  sink_lock_waited_s += part * run.sink_lock_waited_s;
}

SimulatedPipeline simulate(const PipelineModel& model, int batches, std::uint64_t first) {
  return PipelineRun(model, batches, first).run();
}

}  // namespace headrace::analysis
