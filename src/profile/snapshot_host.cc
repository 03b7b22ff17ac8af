#include "profile/snapshot_parts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace::profile {
namespace {

using metrics::HostCell;
using metrics::HostFigure;

/// The machine counts as full from here on: then what others use is taken from this run.
constexpr double kFull = 0.95;
/// Probes of the interpreter lock that are needed to say anything.
constexpr std::uint64_t kMinProbes = 3;

/// Increase of a figure over some stretch of loop time; empty if it is unknown.
using Increase = std::optional<double>;

struct Stretch {
  double cores = 0;
  std::array<Increase, metrics::kHostFigures> figures;

  const Increase& of(HostFigure which) const { return figures[static_cast<std::size_t>(which)]; }
  double covered() const { return of(HostFigure::covered).value_or(0); }
  Increase foreign() const {
    const Increase& busy = of(HostFigure::busy);
    const Increase& own = of(HostFigure::tree_cpu);
    if (!busy || !own) return std::nullopt;
    return std::max(0.0, *busy - *own - of(HostFigure::other_ranks_cpu).value_or(0));
  }
  std::optional<double> share_of_cores(const Increase& ns) const {
    if (!ns || covered() <= 0 || cores <= 0) return std::nullopt;
    return std::clamp(*ns / (covered() * cores), 0.0, 1.0);
  }
  std::optional<double> share_of_time(HostFigure which) const {
    if (!of(which) || covered() <= 0) return std::nullopt;
    return std::clamp(*of(which) / covered(), 0.0, 1.0);
  }
};

std::int64_t grid_width(const HostCell& cell) {
  return metrics::kFirstWindowNs << std::min(cell.grid.doublings.load(), metrics::kMaxDoublings);
}

/// Running total of a figure at a window boundary; the newest total behind the last closed window.
double total_at(const HostCell& cell, int figure, std::int64_t boundary_ns) {
  const std::int64_t index = boundary_ns / grid_width(cell) - 1;
  if (index < 0) return 0;
  const bool closed =
      index < static_cast<std::int64_t>(std::min<std::uint32_t>(cell.grid.closed.load(), metrics::kWindows));
  return static_cast<double>(closed ? cell.windows.get(static_cast<int>(index), figure)
                                    : cell.totals[static_cast<std::size_t>(figure)].load());
}

Stretch between(const HostCell& cell, std::int64_t from_ns, std::int64_t to_ns) {
  Stretch out;
  out.cores = std::min<std::uint32_t>(cell.cores.load(), 65536);
  const std::uint32_t available = cell.available.load();
  for (int which = 0; which < metrics::kHostFigures; ++which) {
    const double value = std::max(0.0, total_at(cell, which, to_ns) - total_at(cell, which, from_ns));
    if ((available >> which & 1) != 0 && std::isfinite(value))
      out.figures[static_cast<std::size_t>(which)] = value;
  }
  return out;
}

/// Foreign CPU counts as far as it and the run together exceed the cores: what others use in windows in which
/// the machine is full, and no more than this run's threads waited for a core (a run that needs none loses
/// none).
std::optional<double> contention(const HostCell& cell, std::int64_t from_ns, std::int64_t to_ns,
                                 const Increase& run_queue_ns) {
  const std::int64_t width = grid_width(cell);
  double contended = 0;
  double covered = 0;
  bool known = false;
  const std::int64_t last = std::min(to_ns / width, from_ns / width + metrics::kWindows);
  for (std::int64_t k = from_ns / width; k < last; ++k) {
    const Stretch window = between(cell, k * width, (k + 1) * width);
    const Increase foreign = window.foreign();
    if (!foreign || window.covered() <= 0) continue;
    known = true;
    covered += window.covered() * window.cores;
    if (*window.of(HostFigure::busy) >= kFull * window.covered() * window.cores) contended += *foreign;
  }
  if (!known || covered <= 0) return std::nullopt;
  if (run_queue_ns) contended = std::min(contended, *run_queue_ns);
  return std::clamp(contended / covered, 0.0, 1.0);
}

/// In less time it is caches that fill, workers that start, and what other programs allocate for a while.
constexpr double kShortestGrowthNs = 600e9;

void add_room(const HostCell& cell, Host& host) {
  if (cell.shared_memory_bytes.load() > 0) host.shared_memory = cell.shared_memory_bytes.load();
  if (cell.available_bytes.load() <= 0) return;
  host.available_memory = cell.available_bytes.load();
  // As floating point: a damaged file may hold anything.
  const auto first_ns = static_cast<double>(cell.first_available_ns.load());
  const double took_ns = static_cast<double>(cell.available_ns.load()) - first_ns;
  if (first_ns <= 0 || took_ns < kShortestGrowthNs) return;
  const double lost = static_cast<double>(cell.first_available_bytes.load()) -
                      static_cast<double>(cell.available_bytes.load());
  host.memory_loss_per_s = lost / took_ns * 1e9;
}

}  // namespace

void add_host(const SegmentImage& image, const SegmentFigures& figures, Profile& profile) {
  const HostCell& cell = image.host();
  Host& host = profile.host;
  host.cores = static_cast<int>(std::min<std::uint32_t>(cell.cores.load(), 65536));
  double present = 0;
  double run_queue = 0;
  bool run_queue_known = false;
  for (const WorkerFigures& worker : figures.workers) {
    if (worker.is_sink || worker.retired || !worker.run_queue_ns) continue;
    run_queue_known = true;
    run_queue += *worker.run_queue_ns;
    for (std::size_t state = 1; state < worker.state_ns.size(); ++state) present += worker.state_ns[state];
    for (const CellFigures& owned : figures.cells) {
      if (figures.workers[owned.worker].index == worker.index) present += owned.busy_ns;
    }
  }
  if (run_queue_known && present > 0) host.run_queue_wait_share = std::clamp(run_queue / present, 0.0, 1.0);
  add_room(cell, host);
  if (cell.memory_bytes.load() > 0) host.memory = cell.memory_bytes.load();
  if (cell.gil_probes.load() >= kMinProbes) {
    host.gil_share = std::clamp(
        static_cast<double>(cell.gil_contended.load()) / static_cast<double>(cell.gil_probes.load()), 0.0,
        1.0);
  }
  if (cell.begun.load() == 0) return;
  const std::int64_t to_ns =
      metrics::LoopClock::decode(image.header().loop_clock.word(), figures.now_ns).loop_ns;
  const std::int64_t from_ns = std::max<std::int64_t>(0, to_ns - figures.loop_ns);
  const Stretch whole =
      between(cell, from_ns / grid_width(cell) * grid_width(cell), to_ns + grid_width(cell));
  host.cpu_share = whole.share_of_cores(whole.of(HostFigure::tree_cpu));
  const Increase& process_cpu = whole.of(HostFigure::process_cpu);
  if (process_cpu && whole.covered() > 0) host.process_cpu_cores = *process_cpu / whole.covered();
  host.foreign_cpu_share = whole.share_of_cores(whole.foreign());
  Increase waited_for_cores;
  for (const WorkerFigures& worker : figures.workers) {
    if (worker.run_queue_ns) waited_for_cores = waited_for_cores.value_or(0) + *worker.run_queue_ns;
  }
  host.foreign_contention_share = contention(cell, from_ns, to_ns + grid_width(cell), waited_for_cores);
  host.throttled_share = whole.share_of_time(HostFigure::throttled);
  host.io_pressure_share = whole.share_of_time(HostFigure::io_pressure);
  host.memory_pressure_share = whole.share_of_time(HostFigure::memory_pressure);
  host.refaulted_bytes = whole.of(HostFigure::refaulted);
  host.swapped_in_bytes = whole.of(HostFigure::swapped_in);
}

WindowHost host_window(const SegmentImage& image, std::int64_t k, std::int64_t width) {
  const HostCell& cell = image.host();
  if (cell.begun.load() == 0) return {};
  const Stretch window = between(cell, k * width, (k + 1) * width);
  return {window.share_of_cores(window.of(HostFigure::tree_cpu)), window.share_of_cores(window.foreign()),
          window.share_of_time(HostFigure::throttled)};
}

}  // namespace headrace::profile
