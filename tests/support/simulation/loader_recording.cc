// What happened in a DataLoader, as the Profile that recording it would give.
#include <algorithm>
#include <numeric>

#include "headrace/profile/profile_json.h"
#include "support/simulation/dataloader_model.h"
#include "support/simulation/latency.h"
#include "support/simulation/loader_engine.h"

namespace headrace::simulation {
namespace {

constexpr std::size_t kWorkerSequence = 128;
constexpr std::size_t kMaxIndexQueues = 16;

class LoaderRecording {
 public:
  LoaderRecording(const DataLoader& loader, const LoaderHappened& happened)
      : loader_(loader), happened_(happened), elapsed_s_(happened.now - happened.begin_s) {}

  profile::Profile profile() const {
    profile::Profile profile;
    profile.loader = "DataLoader";
    profile.epochs = static_cast<std::uint64_t>(loader_.epochs);
    profile.finished = true;
    profile.startup.first_batch_s = happened_.startup_s;
    profile.startup.later_epochs_s = (loader_.epochs - 1) * loader_.epoch_start_s;
    if (loader_.epochs > 1) profile.startup.worker_start_s = loader_.epoch_start_s;
    profile.elapsed_s = elapsed_s_;
    fill_sink(profile.sink);
    if (loader_.sampler_s > 0)
      profile.operators.push_back(served("RandomSampler", "sampler", happened_.sampler_busy));
    for (std::size_t p = 0; p < loader_.parts.size(); ++p) profile.operators.push_back(part_profile(p));
    if (workers() > 0) {
      profile.operators.push_back(served("handoff", "handoff", charged("handoff")));
      if (loader_.pin_s > 0)
        profile.operators.push_back(served("pin_memory", "pin_memory", happened_.pin_busy));
      add_queues(profile);
      fill_handoff(profile);
    }
    if (loader_.copy_s > 0)
      profile.operators.push_back(served("to_device", "transfer", loader_.copy_s * batches()));
    describe(loader_, profile);
    fill_ledger(profile);
    fill_windows(profile);
    fill_host(profile.host);
    profile::find_queue_ends(profile);
    return profile;
  }

 private:
  int workers() const { return loader_.num_workers; }
  double batches() const { return static_cast<double>(std::max<std::size_t>(1, happened_.waits.size())); }
  double charged(const std::string& what) const {
    double sum = 0;
    for (const LoaderCharge& row : happened_.ledger) sum += row.what == what ? row.seconds : 0;
    return sum;
  }

  profile::OperatorProfile part_profile(std::size_t p) const {
    const Part& part = loader_.parts[p];
    profile::OperatorProfile op;
    op.name = part.name;
    op.kind = p == 0 ? "source" : part.per_batch ? "batch" : "map";
    op.workers = std::max(1, workers());
    op.in_sink = workers() == 0;
    op.executor = workers() == 0 ? "" : "process";
    op.segment = 0;
    op.fidelity = "exact";
    op.items_per_batch = part.per_batch ? 1 : loader_.batch_size;
    op.parameters.push_back(
        {"num_workers", static_cast<double>(workers()), 0.0, {}, false, profile::Quantity::workers});
    std::vector<double> walls;
    double cpu = 0;
    double run_queue = 0;
    double out = 0;
    for (std::size_t w = 0; w < happened_.workers.size(); ++w) {
      const LoaderWorker& worker = happened_.workers[w];
      const PartSeen& seen = worker.parts[p];
      profile::WorkerProfile one;
      one.name = std::to_string(1000 + w) + "/" + std::to_string(1000 + w);
      if (workers() > 0) one.worker_id = static_cast<std::int64_t>(w);
      if (loader_.stream) one.shard = std::to_string(w + 1) + " of " + std::to_string(op.workers);
      one.items = seen.walls.size();
      one.busy_s = seen.busy;
      one.cpu_s = seen.cpu;
      one.run_queue_wait_s = seen.run_queue;
      one.states = {seen.busy / elapsed_s_, 0, worker.blocked_out / elapsed_s_, 0};
      one.states.idle = std::max(0.0, 1 - one.states.busy - one.states.blocked_out);
      one.service = latency_of(seen.walls);
      const std::size_t keep = std::min(kWorkerSequence, seen.samples.size());
      one.sequence.assign(seen.samples.end() - static_cast<std::ptrdiff_t>(keep), seen.samples.end());
      one.slowest = seen.samples;
      std::sort(one.slowest.begin(), one.slowest.end(),
                [](const auto& a, const auto& b) { return a.wall_s > b.wall_s; });
      one.slowest.resize(std::min<std::size_t>(8, one.slowest.size()));
      op.per_worker.push_back(one);
      walls.insert(walls.end(), seen.walls.begin(), seen.walls.end());
      op.busy_s += seen.busy;
      cpu += seen.cpu;
      run_queue += seen.run_queue;
      out += worker.blocked_out;
    }
    const double present = elapsed_s_ * op.workers;
    op.states = {op.busy_s / present, 0, out / present, 0};
    op.states.idle = std::max(0.0, 1 - op.states.busy - op.states.blocked_out);
    op.items = walls.size();
    op.cpu_s = cpu;
    op.run_queue_wait_s = run_queue;
    op.demand_s = op.busy_s / batches() / op.workers;
    op.service = latency_of(walls);
    return op;
  }

  /// What the loader adds, one at a time.
  profile::OperatorProfile served(const char* name, const char* kind, double busy_s) const {
    profile::OperatorProfile op;
    op.name = name;
    op.kind = kind;
    op.items = happened_.waits.size();
    op.items_per_batch = 1;
    op.busy_s = busy_s;
    op.demand_s = busy_s / batches();
    op.states.busy = std::min(1.0, busy_s / elapsed_s_);
    op.states.blocked_in = 1 - op.states.busy;
    op.service = {op.items.value_or(0), op.demand_s, op.demand_s, op.demand_s, op.demand_s, op.demand_s};
    op.fidelity = "exact";
    op.in_sink = op.kind == profile::OperatorKind::sampler;
    if (op.kind == profile::OperatorKind::pin_memory) {
      op.executor = "thread";
      op.segment = 1;
      op.cpu_s = loader_.pin_s * batches();
    }
    return op;
  }

  static profile::QueueProfile queue(std::string name, std::string from, std::string to,
                                     std::int64_t capacity, const std::vector<double>& times) {
    profile::QueueProfile queue;
    queue.name = std::move(name);
    queue.from = std::move(from);
    queue.to = std::move(to);
    queue.capacity = capacity;
    queue.unit = "batches";
    const double total = std::accumulate(times.begin(), times.end(), 0.0);
    for (std::size_t level = 0; level < times.size() && total > 0; ++level) {
      queue.occupancy.push_back(times[level] / total);
      queue.mean += static_cast<double>(level) * times[level] / total;
    }
    if (!queue.occupancy.empty()) {
      queue.empty_share = queue.occupancy.front();
      queue.full_share = queue.occupancy.back();
    }
    queue.fidelity = "exact";
    return queue;
  }

  void add_queues(profile::Profile& profile) const {
    const std::string& source = loader_.parts.front().name;
    const std::string& last = loader_.parts.back().name;
    const bool pins = loader_.pin_s > 0;
    const std::int64_t window = workers() * loader_.prefetch_factor;
    if (happened_.workers.size() <= kMaxIndexQueues) {
      for (std::size_t w = 0; w < happened_.workers.size(); ++w) {
        profile.queues.push_back(queue("index[" + std::to_string(w) + "]", "", source,
                                       loader_.prefetch_factor, happened_.workers[w].index_time));
      }
    }
    profile.queues.push_back(
        queue("results", last, pins ? "pin_memory" : "handoff", window, happened_.result_time));
    profile.queues.back().parameters.push_back({"prefetch_factor",
                                                static_cast<double>(loader_.prefetch_factor),
                                                1.0,
                                                {},
                                                false,
                                                profile::Quantity::window});
    if (pins) profile.queues.push_back(queue("pinned", "pin_memory", "sink", window, happened_.pinned_time));
    profile.queues.push_back(
        queue("reorder", pins ? "pin_memory" : "handoff", "sink", window, happened_.reorder_time));
  }

  void fill_handoff(profile::Profile& profile) const {
    profile::Handoff handoff;
    handoff.batches = static_cast<std::uint64_t>(happened_.receives);
    handoff.message_bytes = loader_.message_bytes;
    handoff.tensors = loader_.tensors;
    handoff.pickle_s = handoff.pickle_cpu_s = loader_.pickle_cpu_s;
    handoff.receive_cpu_s = loader_.receive_cpu_s;
    handoff.receive_s = std::max(handoff.receive_cpu_s + loader_.receive_latency_s,
                                 happened_.receive_wall / std::max(1.0, happened_.receives));
    profile.handoff = handoff;
  }

  /// Whom a row of the ledger names; "" if it is nobody.
  std::string charged_operator(const LoaderCharge& row) const {
    if (row.part >= 0) return loader_.parts[static_cast<std::size_t>(row.part)].name;
    if (row.part == kDrawing && loader_.sampler_s > 0) return "RandomSampler";
    return row.what == "handoff" ? "handoff" : "";
  }

  void fill_ledger(profile::Profile& profile) const {
    double wait = 0;
    for (const LoaderCharge& row : happened_.ledger) wait += row.seconds;
    for (const LoaderCharge& row : happened_.ledger) {
      const std::string op = charged_operator(row);
      const std::string what = op.empty() ? "unknown" : row.what;
      profile.stall_ledger.push_back({what, op, row.seconds, wait > 0 ? row.seconds / wait : 0});
    }
  }

  void fill_sink(profile::SinkProfile& sink) const {
    sink.steps = happened_.waits.size() + 1;
    sink.getnext_wait = latency_of(happened_.waits);
    const double wait = std::accumulate(happened_.waits.begin(), happened_.waits.end(), 0.0);
    const double compute = std::accumulate(happened_.computes.begin(), happened_.computes.end(), 0.0);
    sink.compute_s = compute / static_cast<double>(happened_.computes.size());
    sink.step_s = sink.compute_s + wait / batches();
    sink.compute_cpu_s = happened_.compute_cpu / static_cast<double>(happened_.computes.size());
    sink.wait_share = wait / elapsed_s_;
    sink.starved_share = happened_.starved / elapsed_s_;
    sink.handoff_floor_s = happened_.ready > 0 ? happened_.ready_wait / happened_.ready : 0;
    sink.ready_share = happened_.ready / batches();
    double at = 0;
    for (std::size_t i = 0; i < happened_.waits.size(); ++i) {
      const double compute_s = happened_.computes[std::min(i + 1, happened_.computes.size() - 1)];
      sink.longest_waits.push_back({at, happened_.waits[i], i + 1});
      sink.sequence.push_back({happened_.waits[i], compute_s});
      at += happened_.waits[i] + compute_s;
    }
    std::sort(sink.longest_waits.begin(), sink.longest_waits.end(),
              [](const auto& a, const auto& b) { return a.wait_s > b.wait_s; });
    sink.longest_waits.resize(std::min<std::size_t>(8, sink.longest_waits.size()));
  }

  void fill_windows(profile::Profile& profile) const {
    std::vector<LoaderSums> sums = happened_.windows;
    double width = kLoaderWindow_s;
    while (sums.size() > kMaxWindows) {
      std::vector<LoaderSums> half;
      for (std::size_t i = 0; i < sums.size(); i += 2) {
        half.push_back(sums[i]);
        if (i + 1 == sums.size()) break;
        LoaderSums& a = half.back();
        const LoaderSums& b = sums[i + 1];
        a.wait += b.wait, a.starved += b.starved, a.compute += b.compute, a.handoff += b.handoff;
        a.steps += b.steps, a.cpu += b.cpu, a.results += b.results;
        for (std::size_t p = 0; p < a.busy.size(); ++p) a.busy[p] += b.busy[p], a.items[p] += b.items[p];
      }
      sums = half;
      width *= 2;
    }
    for (const LoaderSums& each : sums) {
      profile::Window window;
      const double length = std::max(loader_.tick_s, each.wait + each.compute);
      window.start_s = each.start;
      window.end_s = each.start + std::min(width, length);
      window.steps = each.steps;
      window.wait_s = each.wait;
      window.starved_s = std::min(each.starved, each.wait);
      window.compute_s = each.compute;
      for (const profile::OperatorProfile& op : profile.operators)
        window.operators.push_back(window_of(op, each, length));
      for (const profile::QueueProfile& queue : profile.queues) {
        window.queues.push_back({queue.name == "results" ? each.results / length : queue.mean,
                                 queue.empty_share, queue.full_share});
      }
      window.host.cpu_share = each.cpu / length / loader_.cores;
      profile.windows.push_back(window);
    }
  }

  profile::WindowOperator window_of(const profile::OperatorProfile& op, const LoaderSums& sums,
                                    double length) const {
    const double steps = static_cast<double>(std::max<std::uint64_t>(1, sums.steps));
    for (std::size_t p = 0; p < loader_.parts.size(); ++p) {
      if (loader_.parts[p].name != op.name) continue;
      return {sums.busy[p] / length / op.workers, sums.busy[p] / steps / op.workers, sums.items[p]};
    }
    const double busy = op.kind == profile::OperatorKind::handoff ? sums.handoff : op.states.busy * length;
    return {busy / length, busy / steps, sums.steps};
  }

  void fill_host(profile::Host& host) const {
    host.cores = loader_.cores;
    host.cpu_share = happened_.all_cpu / elapsed_s_ / loader_.cores;
    host.process_cpu_cores = happened_.main_cpu / elapsed_s_;
    host.foreign_cpu_share = loader_.foreign_cores / loader_.cores;
    const double over = *host.cpu_share + *host.foreign_cpu_share - 0.97;
    host.foreign_contention_share = over > 0 ? *host.foreign_cpu_share : 0.0;
    host.throttled_share = 0.0;
    host.gil_share = std::min(1.0, happened_.main_cpu / elapsed_s_);
  }

  const DataLoader& loader_;
  const LoaderHappened& happened_;
  double elapsed_s_;
};

}  // namespace

profile::Profile simulate(const DataLoader& loader, std::uint64_t seed) {
  const LoaderHappened happened = happen(loader, seed);
  return LoaderRecording(loader, happened).profile();
}

}  // namespace headrace::simulation
