#include "line_simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <optional>

namespace headrace::simulation {
namespace {

constexpr double kTick_s = 1e-4;
constexpr double kTurn_s = 5e-3;  // of the interpreter lock
constexpr double kWindow_s = 0.1;
constexpr std::size_t kMostWindows = 128;
constexpr std::size_t kSequence = 256;

profile::Latency latency_of(std::vector<double> values) {
  profile::Latency latency;
  latency.count = values.size();
  if (values.empty()) return latency;
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  latency.mean_s = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  latency.p50_s = at(0.5);
  latency.p90_s = at(0.9);
  latency.p99_s = at(0.99);
  latency.max_s = values.back();
  return latency;
}

/// One thread: a worker of a stage, or the sink.
struct Thread {
  enum class State { kWantsInput, kWorks, kWantsOutput, kDone };
  int stage = -1;  // below 0: the sink
  int number = 0;
  State state = State::kWantsInput;
  std::uint64_t item = 0;
  int taken = 0;
  double sleep_left = 0;
  double cpu_left = 0;
  double held_s = 0;  // of its turn at the lock
  double item_wall = 0;
  double item_cpu = 0;
  bool was_ready = false;
  // recorded
  double busy = 0, in = 0, out = 0, cpu = 0, run_queue = 0;
  std::vector<double> walls;
  std::vector<profile::ServiceSample> samples;
};

struct Queue {
  double level = 0;
  int capacity = 2;
  std::vector<double> time;  // at each level
  double mean_time = 0;
};

struct Sums {
  double start = 0, wait = 0, starved = 0, compute = 0;
  std::uint64_t steps = 0;
  std::vector<double> busy;
  std::vector<std::uint64_t> items;
  std::vector<double> level, empty, full;
  double cpu = 0;
};

class Simulation {
 public:
  Simulation(const Line& line, std::uint64_t seed) : line_(line), random_(seed) {
    for (std::size_t s = 0; s < line.stages.size(); ++s) {
      for (int w = 0; w < line.stages[s].workers; ++w) {
        Thread thread;
        thread.stage = static_cast<int>(s);
        thread.number = w;
        threads_.push_back(thread);
      }
      Queue queue;
      queue.capacity = line.stages[s].capacity;
      queue.level = line.stages[s].prefilled;
      queue.time.assign(static_cast<std::size_t>(queue.capacity) + 1, 0);
      queues_.push_back(queue);
    }
    threads_.push_back(Thread{});  // the sink, stage -1
    held_.resize(line.stages.size());
    next_in_.assign(line.stages.size(), 0);
    next_out_.assign(line.stages.size(), 0);
    ledger_.assign(line.stages.size() + 1, 0);
    startup_left_ = line.first_item_s;
    lock_matters_ = std::any_of(line.stages.begin(), line.stages.end(),
                                [](const Stage& s) { return s.python && !s.process; }) ||
                    line.compute_python;
  }

  profile::Profile run() {
    for (std::uint64_t tick = 0; steps_ < line_.steps && tick < 40'000'000; ++tick) advance(tick);
    return profile();
  }

 private:
  const Stage& stage_of(const Thread& thread) const {
    return line_.stages[static_cast<std::size_t>(thread.stage)];
  }
  bool needs_lock(const Thread& thread) const {
    if (thread.stage < 0) return line_.compute_python;
    return stage_of(thread).python && !stage_of(thread).process;
  }
  /// Between items any Python thread needs the lock for a moment; only then does it matter who holds it.
  bool may_switch(const Thread& thread) const {
    if (!lock_matters_ || (thread.stage >= 0 && stage_of(thread).process)) return true;
    return holder_ < 0 || &threads_[static_cast<std::size_t>(holder_)] == &thread || turn_over_;
  }

  void begin_work(Thread& thread) {
    const bool sink = thread.stage < 0;
    double factor = sink ? line_.compute_factor(static_cast<std::uint64_t>(steps_), random_)
                         : stage_of(thread).factor(thread.item, random_);
    if (!sink && static_cast<std::size_t>(thread.number) < stage_of(thread).worker_times.size()) {
      factor *= stage_of(thread).worker_times[static_cast<std::size_t>(thread.number)];
    }
    const double extra_s = !sink && std::uniform_real_distribution<>(0, 1)(random_) < line_.hiccups
                               ? std::uniform_real_distribution<>(5e-3, 4e-2)(random_)
                               : 0;
    thread.sleep_left =
        extra_s + factor * (sink ? line_.compute_s - line_.compute_cpu_s : stage_of(thread).sleep_s);
    thread.cpu_left = factor * (sink ? line_.compute_cpu_s : stage_of(thread).cpu_s);
    if (thread.stage == 0 && startup_left_ > 0) {
      thread.sleep_left += startup_left_;
      startup_left_ = 0;
    }
    thread.item_wall = 0;
    thread.item_cpu = 0;
    thread.state = Thread::State::kWorks;
  }

  void take_input(Thread& thread) {
    const std::size_t s = static_cast<std::size_t>(thread.stage);
    if (thread.stage == 0) {
      thread.item = next_in_[0]++;
      begin_work(thread);
      return;
    }
    Queue& queue = queues_[thread.stage < 0 ? queues_.size() - 1 : s - 1];
    const int wanted = thread.stage < 0 ? 1 : stage_of(thread).take;
    while (thread.taken < wanted && queue.level >= 1) {
      queue.level -= 1;
      ++thread.taken;
    }
    if (thread.taken < wanted) return;
    thread.taken = 0;
    if (thread.stage >= 0) thread.item = next_in_[s]++;
    if (thread.stage < 0) note_wait(thread);
    begin_work(thread);
  }

  void put_output(Thread& thread) {
    const std::size_t s = static_cast<std::size_t>(thread.stage);
    Queue& queue = queues_[s];
    std::map<std::uint64_t, bool>& held = held_[s];
    if (stage_of(thread).ordered) {
      // Results wait for their turn in a buffer as large as the queue; the next one in order always has room.
      if (thread.item != next_out_[s] && static_cast<int>(held.size()) >= queue.capacity) return;
      held[thread.item] = true;
      while (!held.empty() && held.begin()->first == next_out_[s] && queue.level < queue.capacity) {
        held.erase(held.begin());
        queue.level += 1;
        ++next_out_[s];
      }
    } else {
      if (queue.level >= queue.capacity) return;
      queue.level += 1;
    }
    thread.state = Thread::State::kWantsInput;
  }

  void flush_held() {
    for (std::size_t s = 0; s < queues_.size(); ++s) {
      std::map<std::uint64_t, bool>& held = held_[s];
      while (!held.empty() && held.begin()->first == next_out_[s] && queues_[s].level < queues_[s].capacity) {
        held.erase(held.begin());
        queues_[s].level += 1;
        ++next_out_[s];
      }
    }
  }

  void finish_work(Thread& thread) {
    if (thread.stage < 0) {
      if (recording_) computes_.push_back(thread.item_wall);
      if (recording_) window().steps += 1;
      ++steps_;
      thread.state = Thread::State::kWantsInput;
      wait_ = 0;
      thread.was_ready = queues_.back().level >= 1;
      return;
    }
    if (recording_) {
      thread.walls.push_back(thread.item_wall);
      thread.samples.push_back({thread.walls.size() - 1, thread.item_wall, thread.item_cpu});
      window().items[static_cast<std::size_t>(thread.stage)] += 1;
    }
    thread.state = Thread::State::kWantsOutput;
  }

  void note_wait(Thread& sink) {
    if (!recording_) {
      // The first batch: what came before is start-up.
      startup_s_ = now_;
      recording_ = true;
      begin_s_ = now_;
      return;
    }
    waits_.push_back(wait_);
    if (sink.was_ready) {
      ++ready_;
      ready_wait_ += wait_;
    } else {
      starved_ += wait_;
      window().starved += wait_;
    }
  }

  Sums& window() {
    const double at = now_ - begin_s_;
    if (windows_.empty() || at >= windows_.back().start + kWindow_s) {
      Sums sums;
      sums.start = windows_.empty() ? 0 : windows_.back().start + kWindow_s;
      sums.busy.assign(line_.stages.size(), 0);
      sums.items.assign(line_.stages.size(), 0);
      sums.level.assign(line_.stages.size(), 0);
      sums.empty = sums.full = sums.level;
      windows_.push_back(sums);
    }
    return windows_.back();
  }

  void share_cores() {
    std::vector<Thread*> runnable;
    std::vector<int> want_lock;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      if (thread.state != Thread::State::kWorks || thread.sleep_left > 0 || thread.cpu_left <= 0) continue;
      if (needs_lock(thread)) {
        want_lock.push_back(static_cast<int>(i));
      } else {
        runnable.push_back(&thread);
      }
    }
    turn_over_ = false;
    if (want_lock.empty()) {
      holder_ = -1;
    } else {
      const bool holds = std::find(want_lock.begin(), want_lock.end(), holder_) != want_lock.end();
      if (holds && threads_[static_cast<std::size_t>(holder_)].held_s >= kTurn_s) turn_over_ = true;
      if (!holds || turn_over_) {
        const auto next =
            std::find_if(want_lock.begin(), want_lock.end(), [&](int i) { return i > holder_; });
        holder_ = next == want_lock.end() ? want_lock.front() : *next;
        threads_[static_cast<std::size_t>(holder_)].held_s = 0;
      }
      runnable.push_back(&threads_[static_cast<std::size_t>(holder_)]);
      threads_[static_cast<std::size_t>(holder_)].held_s += kTick_s;
    }
    const double cores = std::max(0.1, line_.cores - line_.foreign_cores);
    const double share = runnable.empty() ? 1 : std::min(1.0, cores / static_cast<double>(runnable.size()));
    for (Thread* thread : runnable) {
      thread->cpu_left -= kTick_s * share;
      thread->item_cpu += kTick_s * share;
      if (!recording_) continue;
      thread->cpu += kTick_s * share;
      thread->run_queue += kTick_s * (1 - share);
      process_cpu_ += thread->stage >= 0 && stage_of(*thread).process ? 0 : kTick_s * share;
      all_cpu_ += kTick_s * share;
      window().cpu += kTick_s * share;
    }
  }

  void charge_wait() {
    for (std::size_t s = line_.stages.size(); s-- > 0;) {
      for (const Thread& thread : threads_) {
        if (thread.stage == static_cast<int>(s) && thread.state == Thread::State::kWorks) {
          ledger_[s] += kTick_s;
          return;
        }
      }
    }
    ledger_.back() += kTick_s;
  }

  void advance(std::uint64_t tick) {
    now_ = static_cast<double>(tick) * kTick_s;
    flush_held();
    // Downstream first, so that an item passes one stage per tick; twice, so that room made is used at once.
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = threads_.size(); i-- > 0;) {
        Thread& thread = threads_[i];
        if (thread.state == Thread::State::kWorks && thread.sleep_left <= 0 && thread.cpu_left <= 0 &&
            may_switch(thread)) {
          finish_work(thread);
        }
        if (thread.state == Thread::State::kWantsOutput) put_output(thread);
        if (thread.state == Thread::State::kWantsInput && may_switch(thread)) take_input(thread);
      }
    }
    share_cores();
    for (Thread& thread : threads_) {
      if (thread.state == Thread::State::kWorks) {
        thread.item_wall += kTick_s;
        if (thread.sleep_left > 0) thread.sleep_left -= kTick_s;
      }
    }
    if (!recording_) return;
    if (tick % 100 == 0) {
      ++probes_;
      const bool taken = holder_ >= 0 && threads_[static_cast<std::size_t>(holder_)].cpu_left > 1e-3;
      probes_taken_ += taken ? 1 : 0;
    }
    record();
  }

  void record() {
    Sums& sums = window();
    for (Thread& thread : threads_) {
      const bool works = thread.state == Thread::State::kWorks;
      (works ? thread.busy : thread.state == Thread::State::kWantsInput ? thread.in : thread.out) += kTick_s;
      if (thread.stage >= 0) {
        if (works) sums.busy[static_cast<std::size_t>(thread.stage)] += kTick_s;
      } else if (works) {
        sums.compute += kTick_s;
      } else {
        sums.wait += kTick_s;
        wait_ += kTick_s;
        charge_wait();
      }
    }
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      Queue& queue = queues_[q];
      const auto level = static_cast<std::size_t>(std::min<double>(queue.level, queue.capacity));
      queue.time[level] += kTick_s;
      queue.mean_time += queue.level * kTick_s;
      sums.level[q] += queue.level * kTick_s;
      if (queue.level < 1) sums.empty[q] += kTick_s;
      if (queue.level >= queue.capacity) sums.full[q] += kTick_s;
    }
  }

  profile::OperatorProfile operator_profile(std::size_t s, double batches) const {
    const Stage& stage = line_.stages[s];
    profile::OperatorProfile op;
    op.name = stage.name;
    op.kind = s == 0 && stage.kind == "map" ? "source" : stage.kind;
    op.workers = stage.workers;
    op.executor = stage.process ? "process" : "thread";
    op.fidelity = "exact";
    std::vector<double> walls;
    double cpu = 0;
    double run_queue = 0;
    double in = 0;
    double out = 0;
    for (const Thread& thread : threads_) {
      if (thread.stage != static_cast<int>(s)) continue;
      profile::WorkerProfile worker;
      worker.name = "1/" + std::to_string(s * 100 + static_cast<std::size_t>(thread.number));
      worker.items = thread.walls.size();
      worker.busy_s = thread.busy;
      worker.cpu_s = thread.cpu;
      worker.run_queue_wait_s = thread.run_queue;
      worker.service = latency_of(thread.walls);
      const std::size_t keep = std::min(kSequence, thread.samples.size());
      worker.sequence.assign(thread.samples.end() - static_cast<std::ptrdiff_t>(keep), thread.samples.end());
      worker.slowest = thread.samples;
      std::sort(worker.slowest.begin(), worker.slowest.end(),
                [](const auto& a, const auto& b) { return a.wall_s > b.wall_s; });
      worker.slowest.resize(std::min<std::size_t>(8, worker.slowest.size()));
      op.per_worker.push_back(worker);
      walls.insert(walls.end(), thread.walls.begin(), thread.walls.end());
      op.busy_s += thread.busy;
      cpu += thread.cpu;
      run_queue += thread.run_queue;
      in += thread.in;
      out += thread.out;
    }
    const double total = op.busy_s + in + out;
    op.states = {op.busy_s / total, in / total, out / total, 0};
    op.items = walls.size();
    op.items_per_batch = 1;
    for (std::size_t later = s + 1; later < line_.stages.size(); ++later)
      op.items_per_batch *= line_.stages[later].take;
    op.cpu_s = cpu;
    op.run_queue_wait_s = run_queue;
    op.demand_s = op.busy_s / batches / stage.workers;
    op.service = latency_of(walls);
    op.segment = static_cast<int>(s);
    if (stage.knob && op.kind != "source")
      op.knobs.push_back({stage.name + ".workers", static_cast<double>(stage.workers), 1.0, {}, false});
    return op;
  }

  profile::QueueProfile queue_profile(std::size_t q, double elapsed) const {
    profile::QueueProfile queue;
    queue.name = line_.stages[q].name + "_out";
    queue.from = line_.stages[q].name;
    queue.to = q + 1 < line_.stages.size() ? line_.stages[q + 1].name : "sink";
    queue.capacity = queues_[q].capacity;
    for (double time : queues_[q].time) queue.occupancy.push_back(time / elapsed);
    queue.mean = queues_[q].mean_time / elapsed;
    queue.empty_share = queue.occupancy.front();
    queue.full_share = queue.occupancy.back();
    queue.fidelity = "exact";
    queue.knobs.push_back({queue.name + ".capacity", static_cast<double>(queue.capacity), 1.0, {}, true});
    return queue;
  }

  void fill_sink(profile::SinkProfile& sink, double elapsed) const {
    sink.steps = waits_.size() + 1;
    sink.getnext_wait = latency_of(waits_);
    const double wait = std::accumulate(waits_.begin(), waits_.end(), 0.0);
    const double compute = std::accumulate(computes_.begin(), computes_.end(), 0.0);
    sink.compute_s = compute / static_cast<double>(computes_.size());
    sink.step_s = sink.compute_s + wait / static_cast<double>(waits_.size());
    sink.compute_cpu_s = threads_.back().cpu / static_cast<double>(computes_.size());
    sink.wait_share = wait / elapsed;
    sink.starved_share = starved_ / elapsed;
    sink.handoff_floor_s = ready_ > 0 ? ready_wait_ / ready_ : 0;
    sink.ready_share = ready_ / static_cast<double>(waits_.size());
    if (line_.quiet_known) {
      sink.quiet_compute_s = line_.compute_s;
      sink.quiet_steps = 4;
    }
    double at = 0;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      sink.longest_waits.push_back({at, waits_[i], i + 1});
      at += waits_[i] + computes_[std::min(i, computes_.size() - 1)];
      sink.sequence.push_back({waits_[i], computes_[std::min(i + 1, computes_.size() - 1)]});
    }
    std::sort(sink.longest_waits.begin(), sink.longest_waits.end(),
              [](const auto& a, const auto& b) { return a.wait_s > b.wait_s; });
    sink.longest_waits.resize(std::min<std::size_t>(8, sink.longest_waits.size()));
  }

  std::vector<profile::Window> window_profiles() const {
    std::vector<Sums> sums = windows_;
    double width = kWindow_s;
    while (sums.size() > kMostWindows) {
      std::vector<Sums> half;
      for (std::size_t i = 0; i < sums.size(); i += 2) {
        half.push_back(sums[i]);
        if (i + 1 == sums.size()) break;
        Sums& a = half.back();
        const Sums& b = sums[i + 1];
        a.wait += b.wait, a.starved += b.starved, a.compute += b.compute, a.steps += b.steps, a.cpu += b.cpu;
        for (std::size_t s = 0; s < a.busy.size(); ++s) {
          a.busy[s] += b.busy[s], a.items[s] += b.items[s];
          a.level[s] += b.level[s], a.empty[s] += b.empty[s], a.full[s] += b.full[s];
        }
      }
      sums = half;
      width *= 2;
    }
    std::vector<profile::Window> windows;
    for (const Sums& each : sums) {
      profile::Window window;
      const double length = std::max(kTick_s, each.wait + each.compute);
      window.start_s = each.start;
      window.end_s = each.start + std::min(width, length);
      window.steps = each.steps;
      window.wait_s = each.wait;
      window.starved_s = std::min(each.starved, each.wait);
      window.compute_s = each.compute;
      for (std::size_t s = 0; s < line_.stages.size(); ++s) {
        const double workers = line_.stages[s].workers;
        window.operators.push_back(
            {each.busy[s] / (length * workers),
             each.steps > 0 ? each.busy[s] / static_cast<double>(each.steps) / workers : 0, each.items[s]});
        window.queues.push_back({each.level[s] / length, each.empty[s] / length, each.full[s] / length});
      }
      window.host.cpu_share = each.cpu / length / line_.cores;
      windows.push_back(window);
    }
    return windows;
  }

  profile::Profile profile() const {
    profile::Profile profile;
    profile.loader = "simulated";
    profile.epochs = 1;
    profile.finished = true;
    profile.startup.first_batch_s = startup_s_;
    profile.elapsed_s = now_ - begin_s_;
    fill_sink(profile.sink, profile.elapsed_s);
    const double batches = static_cast<double>(std::max<std::size_t>(1, waits_.size()));
    for (std::size_t s = 0; s < line_.stages.size(); ++s) {
      profile.operators.push_back(operator_profile(s, batches));
      profile.queues.push_back(queue_profile(s, profile.elapsed_s));
    }
    const double wait = std::accumulate(ledger_.begin(), ledger_.end(), 0.0);
    for (std::size_t s = 0; s < ledger_.size() && wait > 0; ++s) {
      const bool known = s < line_.stages.size();
      profile.stall_ledger.push_back({known ? "in_service" : "handoff", known ? line_.stages[s].name : "",
                                      ledger_[s], ledger_[s] / wait});
    }
    profile.windows = window_profiles();
    profile.host.cores = line_.cores;
    profile.host.cpu_share = all_cpu_ / profile.elapsed_s / line_.cores;
    profile.host.process_cpu_cores = process_cpu_ / profile.elapsed_s;
    profile.host.foreign_cpu_share = line_.foreign_cores / line_.cores;
    const double over = *profile.host.cpu_share + *profile.host.foreign_cpu_share - 0.97;
    profile.host.foreign_contention_share = over > 0 ? *profile.host.foreign_cpu_share : 0.0;
    profile.host.throttled_share = 0.0;
    if (line_.probe_lock)
      profile.host.gil_share = probes_ > 0 ? static_cast<double>(probes_taken_) / probes_ : 0.0;
    return profile;
  }

  const Line& line_;
  Random random_;
  std::vector<Thread> threads_;
  std::vector<Queue> queues_;
  std::vector<std::map<std::uint64_t, bool>> held_;
  std::vector<std::uint64_t> next_in_, next_out_;
  std::vector<double> ledger_;
  std::vector<Sums> windows_;
  std::vector<double> waits_, computes_;
  double now_ = 0, begin_s_ = 0, startup_s_ = 0, startup_left_ = 0, wait_ = 0, starved_ = 0, ready_wait_ = 0;
  double process_cpu_ = 0, all_cpu_ = 0;
  double ready_ = 0;
  int steps_ = 0, holder_ = -1, probes_ = 0, probes_taken_ = 0;
  bool recording_ = false, turn_over_ = false, lock_matters_ = false;
};

/// Without queues: one thread does everything in turn, and its Profile follows from the services alone.
profile::Profile simulate_in_sink(const Line& line, std::uint64_t seed) {
  Line queued = line;
  queued.in_sink = false;
  profile::Profile profile = simulate(queued, seed);  // for shapes and names; times are set below
  profile.queues.clear();
  profile.stall_ledger.clear();
  profile.windows.clear();
  double load_s = 0;
  double cpu_s = line.compute_cpu_s;
  for (std::size_t s = 0; s < line.stages.size(); ++s) {
    profile::OperatorProfile& op = profile.operators[s];
    const double per_batch = (line.stages[s].sleep_s + line.stages[s].cpu_s) * op.items_per_batch;
    op.workers = 1;
    op.in_sink = true;
    op.segment = 0;
    op.demand_s = per_batch;
    op.busy_s = per_batch * line.steps;
    op.cpu_s = line.stages[s].cpu_s * op.items_per_batch * line.steps;
    op.knobs.clear();
    op.per_worker.clear();
    load_s += per_batch;
    cpu_s += line.stages[s].cpu_s * op.items_per_batch;
  }
  profile::SinkProfile& sink = profile.sink;
  sink.compute_s = line.compute_s;
  sink.step_s = line.compute_s + load_s;
  sink.wait_share = sink.starved_share = load_s / sink.step_s;
  sink.handoff_floor_s = sink.ready_share = 0;
  sink.getnext_wait = {
      static_cast<std::uint64_t>(line.steps), load_s, load_s, 1.1 * load_s, 1.1 * load_s, 1.1 * load_s};
  sink.longest_waits = {
      {0, 1.1 * load_s, 1}, {0, 1.1 * load_s, 2}, {0, 1.1 * load_s, 3}, {0, 1.1 * load_s, 4}};
  sink.sequence.assign(50, {load_s, line.compute_s});
  profile.elapsed_s = sink.step_s * line.steps;
  profile.stall_ledger.push_back({"in_service", line.stages.back().name, load_s * line.steps, 1});
  profile.host.cpu_share = cpu_s / sink.step_s / line.cores;
  profile.host.process_cpu_cores = cpu_s / sink.step_s;
  profile.host.foreign_contention_share = 0;
  profile.host.gil_share = 0;
  return profile;
}

}  // namespace

profile::Profile simulate(const Line& line, std::uint64_t seed) {
  return line.in_sink ? simulate_in_sink(line, seed) : Simulation(line, seed).run();
}

}  // namespace headrace::simulation
