// What happened in a line, as the Profile that recording it would give.
#include <algorithm>
#include <numeric>

#include "headrace/profile/profile_json.h"
#include "support/simulation/engine.h"
#include "support/simulation/latency.h"

namespace headrace::simulation {
namespace {

constexpr std::size_t kThreadSequence = 256;

class Recording {
 public:
  Recording(const Line& line, const Happened& happened) : line_(line), happened_(happened) {}

  profile::Profile profile() const {
    profile::Profile profile;
    profile.loader = "simulated";
    profile.epochs = 1;
    profile.finished = true;
    profile.startup.first_batch_s = happened_.startup_s;
    profile.elapsed_s = happened_.now - happened_.begin_s;
    fill_sink(profile.sink, profile.elapsed_s);
    const double batches = static_cast<double>(std::max<std::size_t>(1, happened_.waits.size()));
    for (std::size_t s = 0; s < line_.stages.size(); ++s) {
      profile.operators.push_back(operator_profile(s, batches));
      profile.queues.push_back(queue_profile(s, profile.elapsed_s));
    }
    const double wait = std::accumulate(happened_.ledger.begin(), happened_.ledger.end(), 0.0);
    for (std::size_t s = 0; s < happened_.ledger.size() && wait > 0; ++s) {
      const bool known = s < line_.stages.size();
      profile.stall_ledger.push_back({known ? "in_service" : "handoff", known ? line_.stages[s].name : "",
                                      happened_.ledger[s], happened_.ledger[s] / wait});
    }
    profile.windows = window_profiles();
    profile.host.cores = line_.cores;
    profile.host.cpu_share = happened_.all_cpu / profile.elapsed_s / line_.cores;
    profile.host.process_cpu_cores = happened_.process_cpu / profile.elapsed_s;
    profile.host.foreign_cpu_share = line_.foreign_cores / line_.cores;
    const double over = *profile.host.cpu_share + *profile.host.foreign_cpu_share - 0.97;
    profile.host.foreign_contention_share = over > 0 ? *profile.host.foreign_cpu_share : 0.0;
    double waited = 0;
    double present = 0;
    for (const Thread& thread : happened_.threads) {
      if (thread.stage < 0) continue;
      waited += thread.run_queue;
      present += thread.busy + thread.in + thread.out;
    }
    profile.host.run_queue_wait_share = present > 0 ? waited / present : 0;
    profile.host.throttled_share = 0.0;
    if (line_.probe_lock)
      profile.host.gil_share =
          happened_.probes > 0 ? static_cast<double>(happened_.probes_taken) / happened_.probes : 0.0;
    profile::find_queue_ends(profile);
    return profile;
  }

 private:
  /// Only a process that uses half a core is looked at.
  bool was_looked_at() const {
    return line_.look_at_threads && happened_.process_cpu >= 0.5 * (happened_.now - happened_.begin_s);
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
    double lock_wait = 0;
    double lock_held = 0;
    double in = 0;
    double out = 0;
    for (const Thread& thread : happened_.threads) {
      if (thread.stage != static_cast<int>(s)) continue;
      profile::WorkerProfile worker;
      worker.name = "1/" + std::to_string(s * 100 + static_cast<std::size_t>(thread.number));
      worker.items = thread.walls.size();
      worker.busy_s = thread.busy;
      worker.cpu_s = thread.cpu;
      worker.run_queue_wait_s = thread.run_queue;
      worker.service = latency_of(thread.walls);
      const std::size_t keep = std::min(kThreadSequence, thread.samples.size());
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
      lock_wait += thread.lock_wait;
      lock_held += thread.lock_held;
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
    if (was_looked_at() && !stage.process) {
      op.lock_wait_s = lock_wait;
      op.lock_held_s = lock_held;
    }
    op.demand_s = op.busy_s / batches / stage.workers;
    op.service = latency_of(walls);
    op.segment = static_cast<int>(s);
    if (stage.parameter && op.kind != profile::OperatorKind::source)
      op.parameters.push_back({stage.name + ".workers",
                               static_cast<double>(stage.workers),
                               1.0,
                               {},
                               false,
                               profile::Quantity::workers});
    return op;
  }

  profile::QueueProfile queue_profile(std::size_t q, double elapsed) const {
    profile::QueueProfile queue;
    queue.name = line_.stages[q].name + "_out";
    queue.from = line_.stages[q].name;
    queue.to = q + 1 < line_.stages.size() ? line_.stages[q + 1].name : "sink";
    queue.capacity = happened_.queues[q].capacity;
    for (double time : happened_.queues[q].time) queue.occupancy.push_back(time / elapsed);
    queue.mean = happened_.queues[q].mean_time / elapsed;
    queue.empty_share = queue.occupancy.front();
    queue.full_share = queue.occupancy.back();
    queue.fidelity = "exact";
    queue.parameters.push_back({queue.name + ".capacity",
                                static_cast<double>(queue.capacity),
                                1.0,
                                {},
                                true,
                                profile::Quantity::capacity});
    return queue;
  }

  void fill_sink(profile::SinkProfile& sink, double elapsed) const {
    sink.steps = happened_.waits.size() + 1;
    sink.getnext_wait = latency_of(happened_.waits);
    const double wait = std::accumulate(happened_.waits.begin(), happened_.waits.end(), 0.0);
    const double compute = std::accumulate(happened_.computes.begin(), happened_.computes.end(), 0.0);
    sink.compute_s = compute / static_cast<double>(happened_.computes.size());
    sink.step_s = sink.compute_s + wait / static_cast<double>(happened_.waits.size());
    sink.compute_cpu_s = happened_.threads.back().cpu / static_cast<double>(happened_.computes.size());
    sink.wait_share = wait / elapsed;
    sink.starved_share = happened_.starved / elapsed;
    sink.handoff_floor_s = happened_.ready > 0 ? happened_.ready_wait / happened_.ready : 0;
    sink.ready_share = happened_.ready / static_cast<double>(happened_.waits.size());
    const Thread& thread = happened_.threads.back();
    const double computes = static_cast<double>(happened_.computes.size());
    if (was_looked_at()) {
      sink.compute_lock_wait_s = thread.lock_wait / computes;
      sink.compute_lock_held_s = thread.lock_held / computes;
    }
    if (line_.quiet_known) {
      sink.quiet_compute_s = line_.compute_s;
      sink.quiet_steps = 4;
    }
    double at = 0;
    for (std::size_t i = 0; i < happened_.waits.size(); ++i) {
      sink.longest_waits.push_back({at, happened_.waits[i], i + 1});
      at += happened_.waits[i] + happened_.computes[std::min(i, happened_.computes.size() - 1)];
      sink.sequence.push_back(
          {happened_.waits[i], happened_.computes[std::min(i + 1, happened_.computes.size() - 1)]});
    }
    std::sort(sink.longest_waits.begin(), sink.longest_waits.end(),
              [](const auto& a, const auto& b) { return a.wait_s > b.wait_s; });
    sink.longest_waits.resize(std::min<std::size_t>(8, sink.longest_waits.size()));
  }

  std::vector<profile::Window> window_profiles() const {
    std::vector<Sums> sums = happened_.windows;
    double width = kWindow_s;
    while (sums.size() > kMaxWindows) {
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

  const Line& line_;
  const Happened& happened_;
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
    op.parameters.clear();
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
  return line.in_sink ? simulate_in_sink(line, seed) : Recording(line, happen(line, seed)).profile();
}

}  // namespace headrace::simulation
