#include "headrace/profile/figures.h"

#include <algorithm>
#include <cmath>

#include "headrace/profile/process_identity.h"
#include "profile/file_systems.h"
#include "profile/member_count.h"
#include "profile/record_life.h"
#include "profile/totals.h"

namespace headrace::profile {
namespace {

using metrics::LatencyBuckets;

bool worker_is(const metrics::WorkerCell& worker, metrics::WorkerLife life) {
  return worker.life.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(life);
}

/// The account that is open at a worker, if it was opened in the current loop.
struct Open {
  std::uint32_t account = 0;
  double since_ns = 0;
  bool counted = false;  ///< totals in the cells are of this loop
};

Open open_of(const metrics::WorkerCell& worker, bool begun) {
  Open open{worker.account.load(), sane(worker.since_ns.load()), worker.begun.load() != 0 || !begun};
  // The worker has not noticed yet that the loop began: what is open counts from loop time 0.
  if (!open.counted) open.since_ns = 0;
  return open;
}

}  // namespace

// --- histogram ---

void HistogramFigures::subtract(const HistogramFigures& base) {
  bool any = false;
  std::size_t highest = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i] -= std::min(buckets[i], base.buckets[i]);
    if (buckets[i] > 0) highest = i;
    any |= base.buckets[i] > 0;
  }
  sum_ns = std::max(0.0, sum_ns - base.sum_ns);
  // The maximum of the difference is known to its bucket only, unless it is new.
  if (any && max_ns <= base.max_ns) {
    const int bucket = static_cast<int>(highest);
    max_ns = std::min(max_ns, LatencyBuckets::lower_ns(bucket) + LatencyBuckets::width_ns(bucket));
  }
}

void HistogramFigures::add(const HistogramFigures& other) {
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
  sum_ns += other.sum_ns;
  max_ns = std::max(max_ns, other.max_ns);
}

std::uint64_t HistogramFigures::count() const {
  std::uint64_t total = 0;
  for (const std::uint64_t bucket : buckets) total += bucket;
  return total;
}

Latency HistogramFigures::latency() const {
  Latency latency;
  latency.count = count();
  if (latency.count == 0) return latency;
  const auto quantile = [&](double share) {
    const double wanted = share * static_cast<double>(latency.count);
    double seen = 0;
    for (int i = 0; i < LatencyBuckets::kCount; ++i) {
      seen += static_cast<double>(buckets[static_cast<std::size_t>(i)]);
      if (seen >= wanted && seen > 0) {
        const double middle = LatencyBuckets::lower_ns(i) + LatencyBuckets::width_ns(i) / 2;
        return std::min(middle, max_ns) * 1e-9;
      }
    }
    return max_ns * 1e-9;
  };
  latency.mean_s = sum_ns * 1e-9 / static_cast<double>(latency.count);
  latency.p50_s = quantile(0.5);
  latency.p90_s = quantile(0.9);
  latency.p99_s = quantile(0.99);
  latency.max_s = max_ns * 1e-9;
  return latency;
}

// --- extraction ---

namespace {

template <class Totals>
constexpr bool lists_every_member() {
  std::size_t listed = 0;
  totals_of(Of<Totals>{}, [&](auto...) { ++listed; });
  return listed == members_of<Totals>();
}
static_assert(lists_every_member<TransferFigures>() && lists_every_member<CellTotals>() &&
                  lists_every_member<WorkerTotals>() && lists_every_member<QueueTotals>() &&
                  lists_every_member<SinkFigures>() && lists_every_member<HandoffFigures>() &&
                  lists_every_member<RemoteTotals>() && lists_every_member<RemoteLoadFigures>() &&
                  lists_every_member<TrendFigures>(),
              "every total needs its line in totals_of()");

/// When a writer counts up to: now while it lives, its last sign of life when it is gone.
struct Moment {
  std::int64_t now_ns = 0;
  bool here = false;  ///< this machine, this boot: processes can be looked at
  std::uint64_t clock_word = 0;

  metrics::LoopClock::Reading loop_clock(std::int64_t ns) const {
    metrics::LoopClock::Reading reading = metrics::LoopClock::decode(clock_word, ns);
    reading.loop_ns = sane_time(reading.loop_ns);
    return reading;
  }
  std::int64_t loop_at(std::int64_t ns) const { return loop_clock(ns).loop_ns; }
};

Moment moment_of(const SegmentImage& image, bool& running) {
  const SegmentHeader& header = image.header();
  Moment moment;
  moment.clock_word = header.loop_clock.word();
  moment.here = header.boot == boot_identity();
  running = moment.here && header.closed.load() == 0 && process_alive(header.owner_pid, header.owner_start);
  const std::uint64_t anchors = header.anchors.count.load();
  std::int64_t last = header.opened_ns;
  for (std::uint32_t i = 0; i < metrics::AnchorRing::kLength && i < anchors; ++i) {
    last = std::max(last, header.anchors.anchors[i].monotonic_ns.load());
  }
  for (const LoaderRecord& loader : image.loaders()) last = std::max(last, loader.sink.last_event_ns.load());
  moment.now_ns = sane_time(running ? std::max(last, metrics::Clock::now_ns()) : last);
  return moment;
}

WorkerFigures worker_figures(const metrics::WorkerCell& worker, std::uint32_t index, const Moment& moment,
                             bool begun) {
  WorkerFigures figures;
  figures.index = index;
  figures.pid = worker.pid.load();
  figures.tid = worker.tid.load();
  figures.retired = worker_is(worker, metrics::WorkerLife::retired);
  figures.is_sink = worker.is_sink.load() != 0;
  if (worker.loader.load() != 0) {
    figures.number = worker.number.load();
    figures.siblings = worker.siblings.load();
  }
  figures.process_threads = std::clamp(worker.process_threads.load(), 0, 1 << 20);
  figures.allowed_cores = std::clamp(worker.allowed_cores.load(), 0, 1 << 20);
  figures.started_ns = sane_time(worker.started_ns.load());
  const bool live = worker_is(worker, metrics::WorkerLife::live);
  figures.alive = live && moment.here && process_alive(figures.pid, worker.process_start.load());
  const std::int64_t last_ns =
      figures.alive ? moment.now_ns : std::min(moment.now_ns, sane_time(worker.last_alive_ns.load()));
  figures.ended_ns = last_ns;
  figures.now_loop_ns = moment.loop_at(live ? last_ns : moment.now_ns);
  const Open open = open_of(worker, begun);
  if (figures.alive && open.account >= metrics::kOperatorAccount) {
    figures.open_cell = open.account - metrics::kOperatorAccount;
    figures.open_s = std::max(0.0, static_cast<double>(figures.now_loop_ns) - open.since_ns) * 1e-9;
  }
  read<WorkerTotals>(figures, worker);
  if (const std::int64_t since = worker.out_of_data_since_ns.load(); since > 0 && !figures.retired)
    figures.out_of_data_ns += std::max(0.0, static_cast<double>(figures.now_loop_ns - since));
  figures.clocked_cpu_ns = std::min(figures.clocked_cpu_ns, figures.clocked_loop_ns);
  for (std::uint32_t state = 0; state < metrics::kWorkerStates; ++state) {
    if (!open.counted) figures.state_ns[state] = 0;
    if (open.account == state && !figures.retired) {
      figures.state_ns[state] += std::max(0.0, static_cast<double>(figures.now_loop_ns) - open.since_ns);
    }
  }
  // A writer that is dead but never said so: after its last sign of life it is finished.
  const double lost = static_cast<double>(moment.loop_at(moment.now_ns) - figures.now_loop_ns);
  if (live && !figures.alive && lost > 0) figures.state_ns[0] += lost;
  for (const metrics::WorkerEdge& edge : worker.edges) {
    const std::uint32_t queue = edge.queue.load();
    if (queue == 0 || queue > kMaxQueues) break;
    figures.edges.push_back({queue - 1, edge.is_put.load() != 0, sane(edge.items.load())});
  }
  return figures;
}

std::vector<ServiceSample> sequence_of(const metrics::ServiceSequence& sequence, std::uint64_t items) {
  constexpr std::uint32_t kLength = metrics::ServiceSequence::kLength;
  std::vector<ServiceSample> samples;
  const std::uint64_t count = sequence.count.load();
  const std::uint64_t first = count > kLength ? count - kLength : 0;
  for (std::uint64_t i = first; i < count && i < first + kLength; ++i) {
    const auto& sample = sequence.samples[i % kLength];
    const double wall = sample.wall_ns.load();
    const double cpu = sample.cpu_ns.load();
    if (!std::isfinite(wall) || wall < 0 || wall > static_cast<double>(kMaxNs) || !std::isfinite(cpu))
      continue;
    // The low 32 bits are stored; the rest follows from the item count.
    const std::uint64_t index = (items & ~std::uint64_t{0xFFFFFFFF}) | sample.index.load();
    samples.push_back({index, wall * 1e-9, cpu < 0 ? -1.0 : std::min(cpu, wall) * 1e-9});
  }
  return samples;
}

CellFigures cell_figures(const metrics::OperatorCell& cell, std::uint32_t index,
                         const metrics::WorkerCell& worker, const WorkerFigures& owner, bool begun) {
  CellFigures figures;
  figures.cell = index;
  figures.op = cell.operator_id.load();
  figures.place = static_cast<metrics::Place>(cell.place.load());
  figures.is_loop = cell.is_loop.load() != 0;
  figures.labelled = cell.labelled.load() != 0;
  figures.sampled = cell.sampled.load() != 0;
  figures.first_done_ns = cell.first_done_ns.load();
  const Open open = open_of(worker, begun);
  const double open_ns = open.account == metrics::kOperatorAccount + index && !owner.retired
                             ? std::max(0.0, static_cast<double>(owner.now_loop_ns) - open.since_ns)
                             : 0;
  if (!open.counted) {
    read_one(figures.items, cell.items);
    read_one(figures.failures, cell.failures);
    figures.busy_ns = open_ns;
    return figures;
  }
  read<CellTotals>(figures, cell);
  figures.file_system = file_system_name(cell.file_system.load());
  figures.busy_ns += open_ns;
  figures.sampled_cpu_ns = std::min(figures.sampled_cpu_ns, figures.sampled_wall_ns);
  figures.sequence = sequence_of(cell.sequence, figures.items);
  for (const auto& item : cell.slowest.items) {
    if (item.ns.load() > 0) figures.slowest.push_back({item.index.load(), sane(item.ns.load()) * 1e-9, -1});
  }
  std::sort(figures.slowest.begin(), figures.slowest.end(),
            [](const ServiceSample& a, const ServiceSample& b) { return a.wall_s > b.wall_s; });
  return figures;
}

QueueFigures queue_figures(const SegmentImage& image, std::uint32_t index, std::int64_t loop_ns, bool begun) {
  const QueueRecord& record = image.queues()[index];
  const metrics::QueueCell& cell = record.cell;
  QueueFigures figures;
  figures.index = index;
  figures.name = record.name.view();
  figures.sampled = cell.sampled.load() != 0;
  figures.capacity = std::max<std::int64_t>(0, cell.capacity.load());
  figures.levels_per_bin = std::clamp<std::int64_t>(cell.levels_per_bin.load(), 1, std::int64_t{1} << 30);
  figures.puts = sane(cell.puts.load());
  figures.gets = sane(cell.gets.load());
  figures.samples = sane(cell.samples.load());
  const metrics::OccupancyBins bins{figures.capacity, figures.levels_per_bin,
                                    std::min(cell.bins.load(), kMaxBinsPerQueue)};
  const std::uint32_t first = cell.first_bin.load();
  figures.time_at_ns.assign(bins.bins, 0);
  const bool counted = cell.begun.load() != 0 || !begun;
  double since = 0;
  if (counted) {
    since = sane(cell.occupancy.since_ns.load());
    figures.level_ns = sane(cell.occupancy.level_ns.load());
    figures.empty_ns = sane(cell.occupancy.empty_ns.load());
    figures.full_ns = sane(cell.occupancy.full_ns.load());
    figures.loop_gets = sane(cell.loop_gets.load());
    read_one(figures.put_wait, cell.put_wait);
    read_one(figures.get_wait, cell.get_wait);
    read_one(figures.item_age, cell.item_age);
    for (std::uint32_t i = 0; i < bins.bins && first + i < image.bins().size(); ++i) {
      figures.time_at_ns[i] = sane(image.bins()[first + i].load());
    }
  }
  const std::int64_t level = std::max<std::int64_t>(0, cell.occupancy.level.load());
  const bool closed = record.life.load(std::memory_order_relaxed) == life_of(RecordLife::closed);
  const double lasted = closed ? 0 : std::max(0.0, static_cast<double>(loop_ns) - since);
  if (bins.bins > 0) figures.time_at_ns[bins.index(level)] += lasted;
  figures.level_ns += lasted * static_cast<double>(level);
  if (level == 0) figures.empty_ns += lasted;
  if (figures.capacity > 0 && level >= figures.capacity) figures.full_ns += lasted;
  return figures;
}

SinkFigures sink_figures(const metrics::SinkCell& cell, std::int64_t loop_ns, bool running) {
  SinkFigures figures;
  read(figures, cell);
  figures.marked_steps = std::min(figures.marked_steps, figures.whole_steps);
  figures.tail_steps = std::min(figures.tail_steps, figures.marked_steps);
  if (cell.waiting.load() != 0 && running) {
    // A total stall shows as it happens: the wait that lasts now counts, and nobody waits that long for a
    // ready batch.
    const double open = std::max(0.0, static_cast<double>(loop_ns) - sane(cell.since_ns.load()));
    figures.wait_ns += open;
    figures.starved_ns += open;
  }
  return figures;
}

}  // namespace

SegmentFigures SegmentFigures::of(const SegmentImage& image, std::uint32_t loader) {
  SegmentFigures figures;
  const Moment moment = moment_of(image, figures.running);
  const metrics::LoopClock::Reading clock = moment.loop_clock(moment.now_ns);
  figures.now_ns = moment.now_ns;
  figures.loop_ns = clock.loop_ns;
  figures.begun = clock.begun;
  const auto workers = image.workers();
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    const std::uint32_t life = workers[i].life.load(std::memory_order_relaxed);
    if (life < life_of(metrics::WorkerLife::live) || life > life_of(metrics::WorkerLife::retired)) continue;
    figures.workers.push_back(worker_figures(workers[i], i, moment, clock.begun));
  }
  const auto cells = image.cells();
  for (std::uint32_t i = 0; i < cells.size(); ++i) {
    const std::uint32_t owner = cells[i].owner.load();
    if (owner == 0 || cells[i].operator_id.load() >= kMaxOperators || cells[i].place.load() > 2) continue;
    const auto worker = std::find_if(figures.workers.begin(), figures.workers.end(),
                                     [&](const WorkerFigures& w) { return w.index + 1 == owner; });
    if (worker == figures.workers.end()) continue;
    figures.cells.push_back(cell_figures(cells[i], i, workers[owner - 1], *worker, clock.begun));
    figures.cells.back().worker = static_cast<std::uint32_t>(worker - figures.workers.begin());
  }
  const auto queues = image.queues();
  for (std::uint32_t i = 0; i < queues.size(); ++i) {
    if (!is_live(queues[i].life.load(std::memory_order_relaxed))) continue;
    figures.queues.push_back(queue_figures(image, i, clock.loop_ns, clock.begun));
  }
  for (const metrics::RemoteCell& remote : image.remotes()) {
    const std::uint32_t owner = remote.owner.load(std::memory_order_relaxed);
    if (owner == 0) continue;
    RemoteFigures& its = figures.remotes.emplace_back();
    its.owner = owner;
    read<RemoteTotals>(its, remote);
  }
  if (loader < image.loaders().size()) {
    figures.sink = sink_figures(image.loaders()[loader].sink, clock.loop_ns, figures.running);
    read(figures.handoff, image.loaders()[loader].handoff);
  }
  return figures;
}

// --- windows ---

namespace {

/// Index of the boundary on a grid: -1 before the first window, `closed` or more behind the last closed one.
std::int64_t boundary_index(const metrics::WindowGrid& grid, std::int64_t boundary) {
  const std::uint32_t doublings = std::min(grid.doublings.load(), metrics::kMaxDoublings);
  return boundary / (metrics::kFirstWindowNs << doublings) - 1;
}

bool is_closed(const metrics::WindowGrid& grid, std::int64_t index) {
  return index < static_cast<std::int64_t>(std::min<std::uint32_t>(grid.closed.load(), metrics::kWindows));
}

}  // namespace

double busy_at(const SegmentImage& image, const CellFigures& cell, const WorkerFigures& worker,
               std::int64_t boundary) {
  const metrics::WorkerCell& record = image.workers()[worker.index];
  const metrics::OperatorCell& raw = image.cells()[cell.cell];
  const bool begun = metrics::LoopClock::decode(image.header().loop_clock.word(), 0).begun;
  const Open open = open_of(record, begun);
  const std::int64_t index = open.counted ? boundary_index(record.grid, boundary) : metrics::kWindows;
  if (index < 0) return 0;
  if (open.counted && is_closed(record.grid, index)) return sane(raw.windows.get(static_cast<int>(index), 0));
  double total = open.counted ? sane(raw.busy_ns.load()) : 0;
  if (open.account == metrics::kOperatorAccount + cell.cell && !worker.retired) {
    total += std::max(0.0, static_cast<double>(std::min(boundary, worker.now_loop_ns)) - open.since_ns);
  }
  return total;
}

double items_at(const SegmentImage& image, const CellFigures& cell, const WorkerFigures& worker,
                std::int64_t boundary) {
  const metrics::WorkerCell& record = image.workers()[worker.index];
  const metrics::OperatorCell& raw = image.cells()[cell.cell];
  const bool begun = metrics::LoopClock::decode(image.header().loop_clock.word(), 0).begun;
  if (!open_of(record, begun).counted) return 0;
  const std::int64_t index = boundary_index(record.grid, boundary);
  if (index < 0) return 0;
  return is_closed(record.grid, index) ? sane(raw.windows.get(static_cast<int>(index), 1))
                                       : sane(raw.loop_items.load());
}

double queue_at(const SegmentImage& image, std::uint32_t queue, int field, std::int64_t boundary,
                std::int64_t loop_now) {
  const metrics::QueueCell& cell = image.queues()[queue].cell;
  const bool begun = metrics::LoopClock::decode(image.header().loop_clock.word(), 0).begun;
  const bool counted = cell.begun.load() != 0 || !begun;
  const std::int64_t index = counted ? boundary_index(cell.grid, boundary) : metrics::kWindows;
  if (index < 0) return 0;
  if (counted && is_closed(cell.grid, index)) return sane(cell.windows.get(static_cast<int>(index), field));
  const std::int64_t level = std::max<std::int64_t>(0, cell.occupancy.level.load());
  const double since = counted ? sane(cell.occupancy.since_ns.load()) : 0;
  const double lasted = std::max(0.0, static_cast<double>(std::min(boundary, loop_now)) - since);
  const auto with_open = [&](std::int64_t total, double weight) {
    return (counted ? sane(total) : 0) + lasted * weight;
  };
  const bool full = cell.capacity.load() > 0 && level >= cell.capacity.load();
  if (field == 2) return with_open(cell.occupancy.level_ns.load(), static_cast<double>(level));
  if (field == 3) return with_open(cell.occupancy.empty_ns.load(), level == 0 ? 1 : 0);
  return with_open(cell.occupancy.full_ns.load(), full ? 1 : 0);
}

double sink_at(const SegmentImage& image, std::uint32_t loader, int field, std::int64_t boundary) {
  const metrics::SinkCell& sink = image.loaders()[loader].sink;
  const std::int64_t index = boundary_index(sink.grid, boundary);
  if (index < 0) return 0;
  if (is_closed(sink.grid, index)) return sane(sink.windows.get(static_cast<int>(index), field));
  const metrics::Relaxed<std::int64_t>* totals[] = {&sink.waits, &sink.wait_ns, &sink.starved_ns,
                                                    &sink.compute_ns};
  return sane(totals[field]->load());
}

std::int64_t common_window_ns(const SegmentImage& image, std::uint32_t loader) {
  std::uint32_t doublings = 0;
  const auto take = [&](const metrics::WindowGrid& grid) {
    doublings = std::max(doublings, std::min(grid.doublings.load(), metrics::kMaxDoublings));
  };
  for (const metrics::WorkerCell& worker : image.workers()) take(worker.grid);
  for (const QueueRecord& queue : image.queues()) take(queue.cell.grid);
  if (loader < image.loaders().size()) take(image.loaders()[loader].sink.grid);
  take(image.host().grid);
  return metrics::kFirstWindowNs << doublings;
}

}  // namespace headrace::profile
