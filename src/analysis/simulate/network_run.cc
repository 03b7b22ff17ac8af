#include "headrace/analysis/simulate/network_run.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "../model/limits.h"
#include "headrace/analysis/simulate/engine.h"

namespace headrace::analysis {
namespace {

/// Rates that no recording has could keep a run going for ever.
constexpr int kMaxEvents = 4'000'000;

class NetworkRun {
 public:
  NetworkRun(const Network& network, int batches, std::uint64_t first)
      : network_(network),
        engine_(network.cores),
        device_(network.device_s),
        first_(first),
        queues_(network.queues.size()) {
    for (std::size_t s = 0; s < network.stages.size(); ++s) {
      orders_.emplace_back();
      taken_.push_back(0);
      busy_s_.push_back(0);
      first_worker_.push_back(workers_.size());
      loop_receives_ = loop_receives_ && !network.stages[s].receives;
      if (network.stages[s].ordered) {
        queues_[static_cast<std::size_t>(network.stages[s].outputs.front().queue)].ordered = true;
      }
      for (int w = 0; w < network.stages[s].workers; ++w) {
        Worker& worker = workers_.emplace_back();
        worker.stage = s;
        worker.lane = static_cast<std::size_t>(w);
        worker.took.resize(network.stages[s].inputs.size());
        worker.made.resize(network.stages[s].outputs.size());
      }
    }
    took_.resize(network.inputs.size());
    settle_ = settling(network);
    steps_ = settle_ + batches;
  }

  SimulatedRun run() {
    for (std::size_t s = 0; s < network_.stages.size(); ++s) {
      for (int i = network_.stages[s].window * network_.stages[s].workers; i > 0; --i) deal(s);
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) runnable_.push_back(actor_of(w));
    runnable_.push_back(kSink);
    for (int events = 0; done_ < steps_ && events < kMaxEvents; ++events) {
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
  enum class Phase { kBegin, kTake, kWork, kOrder, kPut };
  enum class Sink { kCall, kTake, kReceive, kLoad, kDraw, kPool, kStep, kDevice };

  /// An item; below 0: no window dealt it out.
  struct Token {
    int number = -1;
    int maker = -1;  ///< worker to which it was dealt
  };

  /// Tokens still to pass over one edge: fractions add up over the cycles.
  struct TokenCredit {
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
    Token token;
    Phase phase = Phase::kBegin;
    double since_s = 0;
    std::vector<TokenCredit> took, made;
    Task task;
    std::deque<int> dealt;    ///< items of its window that it has not begun
    int on_their_way = 0;     ///< items of its window that the training loop has not taken
    bool idle = false;        ///< waits for another one
    std::deque<Token> sends;  ///< done, and not handed on yet
  };

  struct Queue {
    std::deque<Token> tokens;
    bool ordered = false;
    std::deque<int> getters, putters;

    int level() const { return static_cast<int>(tokens.size()); }
  };

  /// Cycles that are done before older ones.
  struct Order {
    std::uint64_t next = 0;  ///< the oldest that is not
    std::set<std::uint64_t> arrived;
  };

  // Actors: the training loop, then the workers, then what hands on beside each of them.
  static constexpr int kSink = 0;
  static int actor_of(std::size_t worker) { return static_cast<int>(worker) + 1; }
  int sender_of(std::size_t worker) const { return actor_of(workers_.size() + worker); }

  /// Batches before the run is measured.
  static int settling(const Network& network) {
    constexpr double kLongest = 120;
    constexpr double kLongestOfWindow = 400;
    double window = 0;
    for (const Network::Stage& stage : network.stages) window += stage.window * stage.workers;
    if (window > 0) return static_cast<int>(std::min(kLongestOfWindow, window + kSettle));
    double buffered = 0;
    for (const Network::Edge& edge : network.inputs) {
      buffered += network.queues[static_cast<std::size_t>(edge.queue)].capacity / std::max(edge.tokens, 0.01);
    }
    return static_cast<int>(std::min(kLongest, kSettle + 2 * buffered));
  }

  /// One more item to a worker of the stage.
  void deal(std::size_t stage) {
    const auto count = static_cast<std::size_t>(network_.stages[stage].workers);
    for (std::size_t tried = 0; tried < count; ++tried) {
      const std::size_t w = first_worker_[stage] + turn_++ % count;
      Worker& worker = workers_[w];
      if (!network_.ordered && worker.on_their_way >= network_.stages[stage].window) continue;
      worker.dealt.push_back(next_++);
      ++worker.on_their_way;
      if (worker.idle) runnable_.push_back(actor_of(w));
      worker.idle = false;
      return;
    }
  }

  void wake(std::deque<int>& waiting) {
    if (waiting.empty()) return;
    runnable_.push_back(waiting.front());
    waiting.pop_front();
  }

  /// False: the actor waits at a queue that is empty. `token`: the last that it took.
  bool take(int actor, const std::vector<Network::Edge>& edges, std::vector<TokenCredit>& debts,
            Token& token) {
    for (std::size_t e = 0; e < edges.size(); ++e) {
      Queue& queue = queues_[static_cast<std::size_t>(edges[e].queue)];
      for (; debts[e].tokens > 0; --debts[e].tokens) {
        if (queue.tokens.empty()) {
          queue.getters.push_back(actor);
          return false;
        }
        token = queue.tokens.front();
        queue.tokens.pop_front();
        // The next putter of an ordered queue is not the longest waiter.
        do wake(queue.putters);
        while (queue.ordered && !queue.putters.empty());
      }
    }
    return true;
  }

  /// False: the actor waits at a queue that is full.
  bool put(int actor, const std::vector<Network::Edge>& edges, std::vector<TokenCredit>& debts, Token token) {
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::size_t at = static_cast<std::size_t>(edges[e].queue);
      Queue& queue = queues_[at];
      for (; debts[e].tokens > 0; --debts[e].tokens) {
        if (queue.level() >= network_.queues[at].capacity) {
          queue.putters.push_back(actor);
          return false;
        }
        queue.tokens.push_back(token);
        wake(queue.getters);
      }
    }
    return true;
  }

  void resume(int actor) {
    if (actor == kSink) {
      resume_sink();
    } else if (actor < sender_of(0)) {
      resume_worker(static_cast<std::size_t>(actor - 1));
    } else {
      handed_on(static_cast<std::size_t>(actor - sender_of(0)));
    }
  }

  void resume_worker(std::size_t w) {
    Worker& worker = workers_[w];
    const Network::Stage& stage = network_.stages[worker.stage];
    const int actor = actor_of(w);
    for (;;) {
      switch (worker.phase) {
        case Phase::kBegin:
          for (std::size_t e = 0; e < stage.inputs.size(); ++e) worker.took[e].add(stage.inputs[e].tokens);
          worker.phase = Phase::kTake;
          break;
        case Phase::kTake:
          if (!(stage.window > 0 ? take_dealt(w) : take(actor, stage.inputs, worker.took, worker.token)))
            return;
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
          if (stage.hands_on_cpu_s > 0) hand_on(w);
          break;
        case Phase::kOrder:
          if (!put_in_place(actor, stage, worker)) return;
          worker.phase = Phase::kBegin;
          break;
        case Phase::kPut:
          if (!put(actor, stage.outputs, worker.made, worker.token)) return;
          worker.phase = Phase::kBegin;
          break;
      }
    }
  }

  /// Item n may lie n places behind the one that is taken next. False: its place is still taken.
  bool put_in_place(int actor, const Network::Stage& stage, const Worker& worker) {
    const std::size_t at = static_cast<std::size_t>(stage.outputs.front().queue);
    Queue& queue = queues_[at];
    Order& order = orders_[worker.stage];
    const std::uint64_t consumed = order.next - static_cast<std::uint64_t>(queue.level());
    if (worker.number >= consumed + static_cast<std::uint64_t>(network_.queues[at].capacity)) {
      queue.putters.push_back(actor);
      return false;
    }
    order.arrived.insert(worker.number);
    while (order.arrived.erase(order.next) > 0) {
      ++order.next;
      queue.tokens.push_back(worker.token);
      wake(queue.getters);
    }
    return true;
  }

  /// False: the worker has all that was dealt to it.
  bool take_dealt(std::size_t w) {
    Worker& worker = workers_[w];
    worker.idle = worker.dealt.empty();
    if (worker.idle) return false;
    worker.token = {worker.dealt.front(), static_cast<int>(w)};
    worker.dealt.pop_front();
    return true;
  }

  /// The worker goes on while its item is handed on.
  void hand_on(std::size_t w) {
    Worker& worker = workers_[w];
    worker.sends.push_back(worker.token);
    for (TokenCredit& made : worker.made) made.tokens = 0;
    if (worker.sends.size() == 1) engine_.compute(sender_of(w), network_.stages[worker.stage].hands_on_cpu_s);
  }

  void handed_on(std::size_t w) {
    Worker& worker = workers_[w];
    const Network::Stage& stage = network_.stages[worker.stage];
    for (const Network::Edge& edge : stage.outputs) {
      Queue& queue = queues_[static_cast<std::size_t>(edge.queue)];
      queue.tokens.push_back(worker.sends.front());
      wake(queue.getters);
    }
    worker.sends.pop_front();
    if (!worker.sends.empty()) engine_.compute(sender_of(w), stage.hands_on_cpu_s);
  }

  Work receiving(const Token& token) const {
    Work work = network_.receive;
    const bool busy =
        token.maker >= 0 && workers_[static_cast<std::size_t>(token.maker)].phase == Phase::kWork;
    if (busy) work.off_s += network_.receive_locked_s;
    return work;
  }

  Work work_of(Worker& worker) const {
    const Network::Stage& stage = network_.stages[worker.stage];
    const auto& lanes = stage.lanes;
    if (stage.window > 0) {
      const std::size_t at = first_ * lanes.size() + static_cast<std::size_t>(worker.token.number);
      const WorkSequence& lane = lanes[at % lanes.size()];
      return lane[at / lanes.size() % lane.size()];
    }
    const WorkSequence& lane = lanes[worker.lane % lanes.size()];
    // Workers beyond those that were recorded go on where another one's record has its second half.
    const std::size_t shift = worker.lane / lanes.size() * lane.size() / 2;
    Work work = lane[(first_ + worker.cycle++ + shift) % lane.size()];
    if (stage.receives) work += receiving(worker.token);
    return work;
  }

  void resume_sink() {
    for (;;) {
      switch (sink_) {
        case Sink::kCall:
          called_s_ = engine_.now();
          for (std::size_t e = 0; e < took_.size(); ++e) took_[e].add(network_.inputs[e].tokens);
          sink_ = Sink::kTake;
          break;
        case Sink::kTake:
          if (take_held()) {
            begin(Sink::kLoad, loading());
            break;
          }
          if (network_.ordered) took_.front().tokens = 1;
          if (!take(kSink, network_.inputs, took_, taken_by_sink_)) return;
          begin(Sink::kReceive, loop_receives_ ? receiving(taken_by_sink_) : Work{});
          break;
        case Sink::kReceive:
          if (sink_task_.go_on(engine_, kSink)) return;
          count(serve_s_);
          if (network_.ordered) {
            held_.emplace(taken_by_sink_.number, taken_by_sink_);
            sink_ = Sink::kTake;
          } else {
            begin(Sink::kLoad, loading());
          }
          break;
        case Sink::kLoad:
          if (sink_task_.go_on(engine_, kSink)) return;
          count(load_s_);
          begin(Sink::kDraw, network_.draw);
          break;
        case Sink::kDraw:
          if (sink_task_.go_on(engine_, kSink)) return;
          count(serve_s_);
          if (settled()) wait_s_ += engine_.now() - called_s_;
          if (taken_by_sink_.maker >= 0) {
            Worker& maker = workers_[static_cast<std::size_t>(taken_by_sink_.maker)];
            --maker.on_their_way;
            deal(maker.stage);
          }
          sink_ = Sink::kPool;
          break;
        case Sink::kPool:
          // The pool's computation may last until the next step begins.
          if (engine_.pool_computes()) return engine_.await_pool(kSink);
          if (network_.pool_cpu_s > 0) engine_.compute_in_pool(network_.pool_cpu_s);
          begin(Sink::kStep,
                network_.steps[(first_ + static_cast<std::size_t>(done_)) % network_.steps.size()]);
          break;
        case Sink::kStep:
          if (sink_task_.go_on(engine_, kSink)) return;
          // Room for the next step in the device's queue.
          begin(Sink::kDevice, {std::max(0.0, device_.put(since_s_, engine_.now())), 0});
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

  void begin(Sink what, const Work& work) {
    sink_ = what;
    since_s_ = engine_.now();
    sink_task_ = Task();
    if (what == Sink::kStep || work.total_s() > 0) sink_task_.set(work, network_.sink_lock.turns);
  }

  void count(double& seconds) const {
    if (settled()) seconds += engine_.now() - std::max(since_s_, settled_s_);
  }

  /// The batch that comes next in order is here.
  bool take_held() {
    const auto next = network_.ordered ? held_.find(awaited_) : held_.end();
    if (next == held_.end()) return false;
    taken_by_sink_ = next->second;
    held_.erase(next);
    ++awaited_;
    return true;
  }

  Work loading() const {
    if (network_.in_sink.empty()) return {};
    return network_.in_sink[(first_ + static_cast<std::size_t>(done_)) % network_.in_sink.size()];
  }

  bool settled() const { return done_ >= settle_; }
  void settle() {
    settled_s_ = engine_.now();
    computed_before_s_ = engine_.computed_s();
    locked_before_s_ = engine_.locked_s();
    lock_waited_before_s_ = lock_waits();
  }

  /// Waits of the stages, then of the training loop.
  std::vector<double> lock_waits() const {
    std::vector<double> waits(network_.stages.size() + 1, 0);
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      waits[workers_[w].stage] += engine_.lock_wait_s(actor_of(w));
    }
    waits.back() = engine_.lock_wait_s(kSink);
    return waits;
  }

  SimulatedRun figures() const {
    SimulatedRun run;
    run.busy.assign(network_.stages.size(), 0);
    run.lock_waited_s.assign(network_.stages.size(), 0);
    const double time_s = engine_.now() - settled_s_;
    if (done_ < steps_ || time_s <= 0) return run;
    run.step_s = time_s / (steps_ - settle_);
    run.wait_share = wait_s_ / time_s;
    run.serve_share = serve_s_ / time_s;
    run.load_share = load_s_ / time_s;
    run.cpu_share = (engine_.computed_s() - computed_before_s_) / time_s / network_.cores;
    run.lock_share = (engine_.locked_s() - locked_before_s_) / time_s;
    for (std::size_t s = 0; s < run.busy.size(); ++s) run.busy[s] = busy_s_[s];
    for (const Worker& worker : workers_) {
      if (worker.phase != Phase::kWork) continue;
      run.busy[worker.stage] += engine_.now() - std::max(worker.since_s, settled_s_);
    }
    for (std::size_t s = 0; s < run.busy.size(); ++s) run.busy[s] /= time_s * network_.stages[s].workers;
    const std::vector<double> waits = lock_waits();
    const auto per_batch_s = [&](std::size_t at) {
      return (waits[at] - lock_waited_before_s_[at]) / (steps_ - settle_);
    };
    for (std::size_t s = 0; s < run.busy.size(); ++s) run.lock_waited_s[s] = per_batch_s(s);
    run.sink_lock_waited_s = per_batch_s(run.busy.size());
    return run;
  }

  const Network& network_;
  Engine engine_;
  DeviceQueue device_;
  std::size_t first_;
  std::vector<Queue> queues_;
  std::vector<Worker> workers_;
  std::vector<std::size_t> first_worker_;  // per stage
  std::vector<Order> orders_;              // per stage
  std::vector<std::uint64_t> taken_;       // cycles begun, per stage
  std::vector<double> busy_s_;             // per stage
  std::vector<TokenCredit> took_;          // of the training loop
  std::deque<int> runnable_;               // may go on now
  std::size_t turn_ = 0;
  int next_ = 0, awaited_ = 0;  // items of a window: to deal out, and to take in order
  Sink sink_ = Sink::kCall;
  Task sink_task_;
  Token taken_by_sink_;
  std::map<int, Token> held_;  // received before older ones
  bool loop_receives_ = true;
  int done_ = 0, settle_ = 0, steps_ = 0;
  double called_s_ = 0, since_s_ = 0, settled_s_ = 0, computed_before_s_ = 0, locked_before_s_ = 0;
  double wait_s_ = 0, serve_s_ = 0, load_s_ = 0;
  std::vector<double> lock_waited_before_s_;
};

}  // namespace

void SimulatedRun::add(const SimulatedRun& run, double part) {
  step_s += part * run.step_s;
  wait_share += part * run.wait_share;
  serve_share += part * run.serve_share;
  load_share += part * run.load_share;
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

SimulatedRun simulate(const Network& network, int batches, std::uint64_t first) {
  return NetworkRun(network, batches, first).run();
}

}  // namespace headrace::analysis
