#include "headrace/profile/snapshot.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/function_shares.h"
#include "headrace/profile/graph.h"
#include "profile/record_life.h"
#include "profile/recording/host_storage.h"
#include "profile/snapshot_parts.h"
#include "profile/totals.h"

namespace headrace::profile {
namespace {

using metrics::WorkerState;

double state(const WorkerFigures& worker, WorkerState which) {
  return worker.state_ns[static_cast<std::size_t>(which)];
}

/// Scales shares that overlap (rounding, a torn read) so that they sum to 1.
States normalised(States states) {
  const double sum = states.busy + states.blocked_in + states.blocked_out + states.idle;
  if (sum <= 0) return {};
  for (double* one : {&states.busy, &states.blocked_in, &states.blocked_out, &states.idle}) *one /= sum;
  return states;
}

std::optional<Transfer> transfer_of(const TransferFigures& figures) {
  if (figures.copies <= 0 && figures.bytes <= 0 && figures.buffer_wait_ns <= 0) return std::nullopt;
  Transfer transfer;
  copy_totals<TransferFigures>(transfer, figures);
  if (figures.copy_ns > 0 && figures.timed_bytes > 0)
    transfer.bytes_per_s = figures.timed_bytes / transfer.copy_s;
  const double told = figures.pinned_bytes + figures.pageable_bytes;
  if (told > 0) transfer.pinned_share = share(figures.pinned_bytes, told);
  return transfer;
}

/// More threads than any machine's cores are a damaged record.
constexpr double kMaxPoolThreads = 4096;
/// An item that takes as long may never end.
constexpr double kLongItem_s = 5;

class ProfileBuilder {
 public:
  ProfileBuilder(const SegmentImage& image, std::uint32_t loader, const SegmentImage* since)
      : image_(image), loader_(loader), figures_(SegmentFigures::of(image, loader)) {
    if (since != nullptr) {
      const SegmentFigures base = SegmentFigures::of(*since, loader);
      if (base.begun) base_loop_ns_ = base.loop_ns;
      figures_.subtract(base);
    }
    reconcile_cpu(figures_, image_.operators());
    run_queue_waits_ns_ = run_queue_waits_ns(figures_);
    profile_.model = model_of(image.loaders()[loader]);
    graph_ = Graph::of(image, figures_, loader, profile_.model ? &*profile_.model : nullptr);
    batches_ = std::max(0.0, figures_.sink.waits);
  }

  Profile build() {
    add_identity();
    profile_.sink = sink_of(image_.loaders()[loader_], figures_, base_loop_ns_);
    for (std::size_t i = 0; i < graph_.queues.size(); ++i) add_queue(graph_.queues[i]);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) add_operator(static_cast<int>(i));
    profile_.stall_ledger = stall_ledger_of(image_.loaders()[loader_], figures_, graph_);
    add_windows(image_, loader_, figures_, graph_, base_loop_ns_, profile_);
    add_host(image_, figures_, profile_);
    profile_.host.remote = remote_of(figures_, metrics::RemoteCell::kOfNoOperator);
    if (other_loops_ran()) host_of_own_loops();
    fill_stages(graph_, profile_);
    add_loader_facts(image_.loaders()[loader_], figures_, profile_);
    add_notes();
    return std::move(profile_);
  }

 private:
  void add_identity() {
    const LoaderRecord& record = image_.loaders()[loader_];
    profile_.loader = record.name.view();
    profile_.rank = image_.header().rank;
    profile_.finished = !figures_.running || record.sink.active.load() == 0;
    profile_.epochs = figures_.sink.epochs;
    profile_.elapsed_s = (figures_.sink.wait_ns + figures_.sink.compute_ns) * kSecond;
    profile_.startup.first_batch_s = figures_.sink.first_batch_ns * kSecond;
    profile_.startup.later_epochs_s = figures_.sink.later_epochs_ns * kSecond;
    const std::int64_t iter_ns = record.sink.first_iter_ns.load();
    std::int64_t first_item = std::numeric_limits<std::int64_t>::max();
    for (const WorkerFigures& worker : figures_.workers) {
      // A framework's loader starts its own workers; those of other loaders are not its start-up.
      const bool ours = !of_framework() || image_.workers()[worker.index].loader.load() == loader_ + 1;
      if (ours && !worker.is_sink && !worker.retired) first_item = std::min(first_item, worker.started_ns);
    }
    if (base_loop_ns_ == 0 && iter_ns > 0 && first_item != std::numeric_limits<std::int64_t>::max() &&
        first_item > iter_ns) {
      profile_.startup.worker_start_s =
          std::min(static_cast<double>(first_item - iter_ns) * kSecond, profile_.startup.first_batch_s);
    }
  }

  // --- queues ---

  std::string names_of(const std::vector<int>& nodes) const {
    std::string names;
    for (const int index : nodes) {
      names += (names.empty() ? "" : ", ") + graph_.nodes[static_cast<std::size_t>(index)].name;
    }
    return names;
  }

  /// "results" for "results#2": of two loaders in a run each has such a queue, and a report is of one.
  std::string without_number(const std::string& name) const {
    const std::size_t mark = name.rfind('#');
    if (mark == std::string::npos || name.find_first_not_of("0123456789", mark + 1) != std::string::npos)
      return name;
    const std::string plain = name.substr(0, mark);
    const bool taken = std::any_of(profile_.queues.begin(), profile_.queues.end(),
                                   [&](const QueueProfile& queue) { return queue.name == plain; });
    return taken ? name : plain;
  }

  void add_queue(const GraphQueue& of) {
    const QueueFigures* figures = flow_.figures_of(of.queue);
    if (figures == nullptr) return;
    QueueProfile out;
    out.name = of_framework() ? without_number(figures->name) : figures->name;
    out.from = names_of(of.from);
    out.to = of.to_sink ? "sink" : names_of(of.to);
    out.from_operators = of.from;
    out.to_operators = of.to;
    out.to_sink = of.to_sink;
    out.capacity = figures->capacity;
    out.levels_per_bin = static_cast<int>(std::min<std::int64_t>(figures->levels_per_bin, 1 << 30));
    double total = 0;
    for (const double time : figures->time_at_ns) total += time;
    std::size_t used = figures->time_at_ns.size();
    // The bins of an unbounded queue are cut behind the highest level that it reached.
    if (figures->capacity == 0) {
      while (used > 1 && figures->time_at_ns[used - 1] <= 0) --used;
    }
    if (total > 0) {
      for (std::size_t i = 0; i < used; ++i) out.occupancy.push_back(figures->time_at_ns[i] / total);
      out.mean = figures->level_ns / total;
      out.empty_share = share(figures->empty_ns, total);
      out.full_share = share(figures->full_ns, total);
    }
    const bool reported = figures->puts > 0 || figures->gets > 0 || figures->samples == 0;
    if (reported) {
      out.puts = figures->puts;
      out.gets = figures->gets;
      out.put_wait_s = figures->put_wait.sum_ns * kSecond;
      out.get_wait_s = figures->get_wait.sum_ns * kSecond;
      if (figures->item_age.count() > 0) out.item_age = figures->item_age.latency();
    } else {
      out.samples = figures->samples;
    }
    out.fidelity = figures->sampled || !reported ? Fidelity::sampled : Fidelity::exact;
    if (const auto parameter = loader_queue_parameter(image_.queues()[of.queue],
                                                      static_cast<double>(out.capacity), profile_.model)) {
      out.unit = by_stages() && !of.to_sink ? "items" : "batches";
      if (!parameter->parameter.empty() && parameter->value > 0) out.parameters.push_back(*parameter);
    } else if (out.capacity > 0) {
      out.parameters.push_back({out.name + ".capacity", static_cast<double>(out.capacity), 1.0, std::nullopt,
                                false, Quantity::capacity});
    }
    profile_.queues.push_back(std::move(out));
  }

  // --- operators ---

  /// How long the operators of this loader could have worked: its own loops where it has its own graph, or
  /// others ran too (those of other loaders of the run are not its time), else the run's.
  double present_ns() const {
    return of_framework() || other_loops_ran() ? figures_.sink.wait_ns + figures_.sink.compute_ns
                                               : static_cast<double>(figures_.loop_ns);
  }

  LoaderGraph graph_kind() const {
    return static_cast<LoaderGraph>(image_.loaders()[loader_].has_own_graph.load());
  }
  bool of_framework() const { return graph_kind() != LoaderGraph::by_threads; }
  /// Each worker of a stream reads the whole of it.
  bool reads_all() const { return fact_of(image_.loaders()[loader_], "each_worker_reads") == "all"; }
  /// Batches of its own that one of the loop's is made of.
  double joined_batches() const {
    constexpr int kMax = 100'000;
    const std::string_view fact = fact_of(image_.loaders()[loader_], "batches_per_step");
    int joined = 1;
    std::from_chars(fact.data(), fact.data() + fact.size(), joined);
    return std::clamp(joined, 1, kMax);
  }
  /// Its stages are connected by queues.
  bool by_stages() const { return graph_kind() == LoaderGraph::stages; }

  int workers_of(const GraphNode& node) const {
    if (node.in_sink || node.in_step || node.serves) return 1;
    if (by_stages()) {
      if (node.pool > 0) return node.pool;
      const LoaderStage* stage = stage_of(node, profile_.model);
      return stage == nullptr ? 1 : std::max(1, stage->workers);
    }
    if (of_framework())
      return std::clamp(static_cast<int>(image_.loaders()[loader_].workers.load()), 1, 1 << 20);
    return concurrency(node);
  }

  /// The largest number of workers that were there at the same time.
  int concurrency(const GraphNode& node) const {
    std::vector<std::pair<std::int64_t, int>> changes;
    std::set<std::uint32_t> seen;
    for (const std::uint32_t cell : node.cells) {
      const WorkerFigures& worker = figures_.workers[figures_.cells[cell].worker];
      if (worker.retired || !seen.insert(worker.index).second) continue;
      changes.emplace_back(worker.started_ns, 1);
      changes.emplace_back(std::max(worker.started_ns + 1, worker.ended_ns), -1);
    }
    std::sort(changes.begin(), changes.end());
    int now = 0;
    int most = 1;
    for (const auto& [at, change] : changes) {
      now += change;
      most = std::max(most, now);
    }
    return most;
  }

  /// Time that other operators of the same thread were busy, before and after this one in item order: as the
  /// framework's graph says, else in the order in which they first finish.
  void sibling_busy(const CellFigures& cell, double& before, double& after) const {
    const auto order = [&](const CellFigures& one) {
      return std::pair(image_.operators()[one.op].stage.load(), one.first_done_ns);
    };
    for (const CellFigures& other : figures_.cells) {
      if (other.worker != cell.worker || other.cell == cell.cell || other.place != cell.place) continue;
      (order(other) < order(cell) ? before : after) += other.busy_ns;
    }
  }

  States cell_states_ns(const GraphNode& node, const CellFigures& cell) const {
    const WorkerFigures& worker = figures_.workers[cell.worker];
    States states;
    states.busy = cell.busy_ns;
    if (node.in_sink || node.in_step || node.serves) {
      // A serving node waits for what it passes on, whatever its thread does.
      if (node.serves) states.blocked_in = state(worker, WorkerState::blocked_in);
      states.idle = std::max(0.0, present_ns() - cell.busy_ns - states.blocked_in);
      return states;
    }
    double before = 0;
    double after = 0;
    sibling_busy(cell, before, after);
    states.blocked_in = state(worker, WorkerState::blocked_in) + before;
    states.blocked_out = state(worker, WorkerState::blocked_out) + after;
    states.idle = state(worker, WorkerState::idle) + state(worker, WorkerState::computing);
    if (worker.edges.empty() && !worker.is_sink && worker.number < 0 && states.idle > 0) {
      // An executor's thread between two calls waits for its next task; before its first and after its end it
      // is idle.
      const double present =
          std::max(0.0, std::min(static_cast<double>(figures_.loop_ns),
                                 static_cast<double>(worker.ended_ns - worker.started_ns)));
      const double waiting = std::clamp(present - cell.busy_ns - before - after, 0.0, states.idle);
      states.blocked_in += waiting;
      states.idle -= waiting;
    }
    return states;
  }

  WorkerProfile worker_profile(const GraphNode& node, const CellFigures& cell) const {
    const WorkerFigures& worker = figures_.workers[cell.worker];
    WorkerProfile out;
    out.name =
        worker.retired ? "earlier workers" : std::to_string(worker.pid) + "/" + std::to_string(worker.tid);
    out.pid = worker.pid;
    out.tid = worker.tid;
    out.alive = worker.alive;
    copy_totals<CellTotals>(out, cell);
    copy_totals<WorkerTotals>(out, worker);
    if (cell.sampled_wall_ns > 0) out.cpu_s = out.busy_s * share(cell.sampled_cpu_ns, cell.sampled_wall_ns);
    if (worker.open_cell == cell.cell) {
      out.current_item_s = worker.open_s;
      if (worker.open_s >= kLongItem_s) out.waits_in = state_of_thread(worker.pid, worker.tid);
    }
    if (worker.process_threads > 0) out.process_threads = worker.process_threads;
    if (worker.allowed_cores > 0) out.allowed_cores = worker.allowed_cores;
    out.states = normalised(cell_states_ns(node, cell));
    out.service = cell.service.latency();
    out.sequence = cell.sequence;
    out.slowest = cell.slowest;
    if (worker.number >= 0) {
      out.worker_id = worker.number;
      out.name = "worker " + std::to_string(worker.number);
      if (is_stream(profile_.model))
        out.shard =
            reads_all() ? "all" : std::to_string(worker.number) + " of " + std::to_string(worker.siblings);
    }
    return out;
  }

  void add_operator(int index) {
    const GraphNode& node = graph_.nodes[static_cast<std::size_t>(index)];
    OperatorProfile out;
    out.name = node.name;
    out.kind = node.kind;
    out.in_sink = node.in_sink && (node.flags & kRunsOwnWorkers) == 0;
    out.segment = node.segment;
    out.workers = workers_of(node);
    CellTotals total;
    bool threads = true;
    bool sampled = false;
    std::map<std::string, double> file_systems;
    States states;
    for (const std::uint32_t number : node.cells) {
      const CellFigures& cell = figures_.cells[number];
      const WorkerFigures& worker = figures_.workers[cell.worker];
      add<CellTotals>(total, cell);
      sampled |= cell.sampled;
      if (!cell.file_system.empty()) file_systems[cell.file_system] += cell.storage_samples;
      if (worker.run_queue_ns)
        out.run_queue_wait_s = out.run_queue_wait_s.value_or(0) + run_queue_waits_ns_[number] * kSecond;
      threads &= (worker.retired && !of_framework()) || worker.pid == image_.header().owner_pid;
      const States of_cell = cell_states_ns(node, cell);
      states.busy += of_cell.busy;
      states.blocked_in += of_cell.blocked_in;
      states.blocked_out += of_cell.blocked_out;
      out.per_worker.push_back(worker_profile(node, cell));
    }
    if (of_framework() && !node.in_sink) merge_worker_rows(out.per_worker);
    out.items = total.items;
    out.failures = total.failures;
    out.busy_s = total.busy_ns * kSecond;
    if (node.is_source_object) {
      out.busy_s = std::max(0.0, out.busy_s - figures_.sink.redirected_ns * kSecond);
      states.busy = std::max(0.0, states.busy - figures_.sink.redirected_ns);
    }
    if (total.samples >= kMinSamples) out.lock_wait_s = out.busy_s * share(total.lock_samples, total.samples);
    if (total.holder_samples >= kMinSamples)
      out.lock_held_s = out.busy_s * share(total.held_samples, total.holder_samples);
    if (total.state_samples >= kMinSamples)
      out.storage_wait_s = out.busy_s * share(total.storage_samples, total.state_samples);
    const auto most = std::max_element(file_systems.begin(), file_systems.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != file_systems.end()) out.file_system = most->first;
    if (total.sampled_wall_ns > 0)
      out.cpu_s = out.busy_s * share(total.sampled_cpu_ns, total.sampled_wall_ns);
    if (in_loader_processes(node) && total.sampled_wall_ns > 0)
      out.pool_cpu_s = out.busy_s * std::min(kMaxPoolThreads, total.sampled_pool_ns / total.sampled_wall_ns);
    // Idle is what is left of the time of the workers it has at once: earlier epochs' threads are no idle
    // workers.
    if (by_stages() && !node.in_sink && !node.in_step)
      states = stage_states_ns(node, flow_, states.busy, present_ns() * out.workers);
    const double whole = present_ns() * out.workers;
    states.idle = std::max(0.0, whole - states.busy - states.blocked_in - states.blocked_out);
    out.states = normalised(states);
    out.service = total.service.latency();
    out.transfer = transfer_of(total.transfer);
    out.remote = remote_of(figures_, node.op + 1);
    out.items_per_batch = of_framework() && !by_stages()
                              ? loader_items_per_batch(figures_, graph_, node, joined_batches())
                              : flow_.items_per_batch(node);
    out.demand_s = demand(out, total.loop_items);
    if (of_framework() && out.kind == OperatorKind::handoff)
      out.demand_s = std::max(out.demand_s, profile_.sink.handoff_floor_s);
    const bool in_threads = threads && (node.flags & kRunsInProcesses) == 0;
    // A hand-off runs in both.
    if (!node.serves || out.kind != OperatorKind::handoff)
      out.executor = in_threads ? Executor::thread : Executor::process;
    const LoaderStage* stage = by_stages() ? stage_of(node, profile_.model) : nullptr;
    if (stage != nullptr && stage->runs_in == RunsIn::process) out.executor = Executor::process;
    const bool inclusive = node.is_source_object && node.in_sink && graph_.nodes.size() == 1;
    out.fidelity = inclusive ? Fidelity::inclusive : sampled ? Fidelity::sampled : Fidelity::exact;
    if (by_stages() && node.cells.empty()) make_untimed(node, flow_, present_ns() * kSecond, batches_, out);
    add_parameters(node, out);
    out.functions = functions_of(image_.operators()[node.op]);
    profile_.operators.push_back(std::move(out));
  }

  bool in_loader_processes(const GraphNode& node) const {
    return !node.cells.empty() && std::all_of(node.cells.begin(), node.cells.end(), [&](std::uint32_t cell) {
      return figures_.workers[figures_.cells[cell].worker].number >= 0;
    });
  }

  /// Busy time per delivered batch over the workers. Mean service x items per batch where items were
  /// finished, so that prefetched items count as work too; what is in service now where none was.
  double demand(const OperatorProfile& op, double loop_items) const {
    if (loop_items > 0) return op.busy_s / loop_items * op.items_per_batch / op.workers;
    return batches_ > 0 ? op.busy_s / batches_ / op.workers : 0;
  }

  void add_parameters(const GraphNode& node, OperatorProfile& out) const {
    if (node.in_step || node.serves) return;
    const auto [parameter, most] = split_parameter(text_of(image_.operators()[node.op].parameter));
    if (by_stages()) {
      if (profile_.model) out.parameters = stage_parameters(*profile_.model, node);
      return;
    }
    if (of_framework()) {
      const double value = node.in_sink ? 0 : out.workers;
      if (!parameter.empty())
        out.parameters.push_back({parameter, value, 0.0, std::nullopt, false, Quantity::workers});
      return;
    }
    const bool is_start = out.kind == OperatorKind::source || out.kind == OperatorKind::generator;
    const bool marked_serial = (node.flags & kMarkedSerial) != 0;
    if (node.in_sink) {
      // Given a number of workers, or a queue of batches, it leaves the loop.
      const Quantity sets = parameter.empty() ? Quantity::capacity : Quantity::workers;
      if (out.in_sink)
        out.parameters.push_back(
            {parameter.empty() ? "prefetch" : parameter, 0, 0.0, std::nullopt, false, sets});
      return;
    }
    if (marked_serial || (is_start && node.inputs.empty() && out.workers == 1)) return;
    const bool live = (node.flags & kIsResizable) != 0;
    out.parameters.push_back({parameter.empty() ? out.name + ".workers" : parameter,
                              static_cast<double>(out.workers), 1.0, most, live, Quantity::workers});
    if ((node.flags & kKeepsOrder) != 0)
      out.parameters.push_back({out.name + ".ordered", 1, 0.0, 1.0, false, Quantity::order});
  }

  bool other_loops_ran() const {
    const auto loaders = image_.loaders();
    return std::count_if(loaders.begin(), loaders.end(),
                         [](const LoaderRecord& loader) { return loader.sink.steps.load() > 0; }) > 1;
  }

  /// With other loops in the run, its CPU figures are theirs too: those of the windows in which this one ran.
  void host_of_own_loops() {
    const auto narrow = [&](std::optional<double>& whole, std::optional<double> WindowHost::* figure) {
      double sum = 0;
      double time_s = 0;
      for (const Window& window : profile_.windows) {
        if (!(window.host.*figure)) continue;
        sum += *(window.host.*figure) * (window.wait_s + window.compute_s);
        time_s += window.wait_s + window.compute_s;
      }
      if (whole && time_s > 0.5 * profile_.elapsed_s) whole = std::clamp(sum / time_s, 0.0, 1.0);
    };
    narrow(profile_.host.cpu_share, &WindowHost::cpu_share);
    narrow(profile_.host.foreign_cpu_share, &WindowHost::foreign_cpu_share);
    narrow(profile_.host.throttled_share, &WindowHost::throttled_share);
  }

  void add_notes() {
    const Dropped& dropped = image_.header().dropped;
    const auto note = [&](std::uint64_t count, const char* what, std::uint32_t limit) {
      if (count == 0) return;
      profile_.notes.push_back(std::to_string(count) + " " + what + " not recorded (a run holds " +
                               std::to_string(limit) + ", where its file system has room)");
    };
    note(dropped.operators.load(), "operators were", kMaxOperators);
    note(dropped.queues.load(), "queues were", kMaxQueues);
    note(dropped.workers.load(), "workers were", kMaxWorkers);
    note(dropped.cells.load(), "pairs of worker and operator were", kMaxCells);
    note(dropped.loaders.load(), "loaders were", kMaxLoaders);
    for (const GraphNode& node : graph_.nodes) {
      if (node.is_source_object && (node.flags & kRunsOwnWorkers) != 0 && graph_.nodes.size() == 1) {
        profile_.notes.push_back("what happens inside " + node.name +
                                 "'s own workers was not recorded: only the wait for it is known");
      }
    }
    add_loader_notes(image_.loaders()[loader_], profile_);
    if (image_.header().in_memory.load() != 0) {
      profile_.notes.push_back(
          "recorded in memory only, as no file could be made: operators in spawned processes are missing");
    }
    std::size_t lost = 0;
    for (const WorkerFigures& worker : figures_.workers) {
      const bool live = is_live(image_.workers()[worker.index]);
      lost += figures_.running && live && !worker.alive && !worker.is_sink ? 1 : 0;
    }
    if (lost > 0) {
      profile_.notes.push_back(std::to_string(lost) + (lost == 1 ? " worker" : " workers") +
                               " died without finishing; what it counted until then is in this report");
    }
  }

  const SegmentImage& image_;
  std::uint32_t loader_;
  SegmentFigures figures_;
  std::vector<double> run_queue_waits_ns_;  ///< per cell
  Graph graph_;
  ItemFlow flow_{figures_, graph_};
  std::int64_t base_loop_ns_ = 0;
  double batches_ = 0;
  Profile profile_;
};

}  // namespace

std::vector<LoaderSummary> list_loaders(const SegmentImage& image) {
  std::vector<LoaderSummary> loaders;
  const auto records = image.loaders();
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    if (!is_live(records[i].life.load(std::memory_order_relaxed))) continue;
    const metrics::SinkCell& sink = records[i].sink;
    const auto seconds = [](const metrics::Relaxed<std::int64_t>& ns) {
      return static_cast<double>(std::max<std::int64_t>(0, ns.load())) * kSecond;
    };
    const double first_s = seconds(sink.first_batch_ns) + seconds(sink.later_epochs_ns);
    loaders.push_back({i, std::string(records[i].name.view()), sink.steps.load(),
                       seconds(sink.wait_ns) + first_s, first_s, seconds(sink.compute_ns), sink.epochs.load(),
                       fact_of(records[i], "superseded") == "yes"});
  }
  const std::vector<LoaderSummary> all = loaders;
  for (LoaderSummary& outer : loaders) {
    for (const LoaderSummary& inner : all) {
      if (fact_of(records[inner.index], "inside") == std::to_string(outer.index))
        outer.wait_s = std::max(0.0, outer.wait_s - inner.wait_s);
    }
  }
  std::stable_sort(loaders.begin(), loaders.end(), [](const LoaderSummary& a, const LoaderSummary& b) {
    return a.superseded != b.superseded ? b.superseded : a.wait_s > b.wait_s;
  });
  return loaders;
}

Profile read_profile(const SegmentImage& image, std::uint32_t loader, const SegmentImage* since) {
  if (loader >= image.loaders().size()) return {};
  return ProfileBuilder(image, loader, since).build();
}

}  // namespace headrace::profile
