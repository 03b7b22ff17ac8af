#include "profile/snapshot_parts.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::profile {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// Sampled items take about as long as all of them do.
bool is_typical(const CellFigures& cell) {
  constexpr double kApart = 1.5;
  const double sampled_ns = ratio(cell.sampled_wall_ns, cell.sampled_items);
  const double mean_ns = ratio(cell.busy_ns, cell.loop_items);
  return sampled_ns <= kApart * mean_ns && mean_ns <= kApart * sampled_ns;
}

/// Writes `cpu_ns` into the cell as if its sampled items had said so.
void set_cpu(CellFigures& cell, double cpu_ns) {
  cell.sampled_cpu_ns = cell.sampled_wall_ns * std::clamp(ratio(cpu_ns, cell.busy_ns), 0.0, 1.0);
}

/// Takes up to `excess_ns` from the cells, each in proportion; returns what is left.
double take_from(const std::vector<CellFigures*>& cells, double excess_ns) {
  double sum_ns = 0;
  for (const CellFigures* cell : cells) sum_ns += estimated_cpu_ns(*cell);
  const double kept = 1 - std::min(1.0, ratio(excess_ns, sum_ns));
  for (CellFigures* cell : cells) set_cpu(*cell, kept * estimated_cpu_ns(*cell));
  return std::max(0.0, excess_ns - sum_ns);
}

/// Spreads `missing_ns` over the time in the cells that is not on a core yet.
void add_to(const std::vector<CellFigures*>& cells, double missing_ns) {
  double room_ns = 0;
  for (const CellFigures* cell : cells) room_ns += cell->busy_ns - estimated_cpu_ns(*cell);
  const double part = std::min(1.0, ratio(missing_ns, room_ns));
  for (CellFigures* cell : cells) {
    const double cpu_ns = estimated_cpu_ns(*cell);
    set_cpu(*cell, cpu_ns + part * (cell->busy_ns - cpu_ns));
  }
}

/// Busy, and not on a core.
double off_core_ns(const CellFigures& cell) { return cell.busy_ns - estimated_cpu_ns(cell); }

/// Cells that are full take no more; the others share what is left.
void share_out(double wait_ns, std::vector<std::size_t> cells, const SegmentFigures& figures,
               std::vector<double>& waits_ns) {
  while (!cells.empty()) {
    double busy_ns = 0;
    for (const std::size_t cell : cells) busy_ns += figures.cells[cell].busy_ns;
    const double per_busy = share(wait_ns, busy_ns);
    const auto full = std::partition(cells.begin(), cells.end(), [&](std::size_t cell) {
      return per_busy * figures.cells[cell].busy_ns < off_core_ns(figures.cells[cell]);
    });
    if (full == cells.end()) {
      for (const std::size_t cell : cells) waits_ns[cell] = per_busy * figures.cells[cell].busy_ns;
      return;
    }
    for (auto cell = full; cell != cells.end(); ++cell) {
      waits_ns[*cell] = off_core_ns(figures.cells[*cell]);
      wait_ns -= waits_ns[*cell];
    }
    cells.erase(full, cells.end());
  }
}

}  // namespace

double estimated_cpu_ns(const CellFigures& cell) {
  return cell.busy_ns * std::min(1.0, ratio(cell.sampled_cpu_ns, cell.sampled_wall_ns));
}

void reconcile_cpu(SegmentFigures& figures, std::span<const OperatorRecord> operators) {
  // The training step of a sink's thread is estimated, too: the difference is known no better than this.
  constexpr double kOfTheSink = 0.05;
  for (std::size_t w = 0; w < figures.workers.size(); ++w) {
    const WorkerFigures& worker = figures.workers[w];
    const bool waits_for_processes =
        std::any_of(figures.cells.begin(), figures.cells.end(), [&](const CellFigures& cell) {
          return cell.worker == w &&
                 (operators[static_cast<std::size_t>(cell.op)].flags.load() & kRunsInProcesses) != 0;
        });
    if (!(worker.clocked_loop_ns > 0) || waits_for_processes) continue;
    double present_ns = 0;
    for (const double state_ns : worker.state_ns) present_ns += state_ns;
    std::vector<CellFigures*> typical;
    std::vector<CellFigures*> others;
    double estimated_ns = 0;
    for (CellFigures& cell : figures.cells) {
      if (cell.worker != w) continue;
      present_ns += cell.busy_ns;
      // Work inside the training step is part of the step's own CPU time.
      if (cell.place == metrics::Place::step || !(cell.sampled_wall_ns > 0)) continue;
      estimated_ns += estimated_cpu_ns(cell);
      (is_typical(cell) ? typical : others).push_back(&cell);
    }
    const double used_ns = worker.clocked_cpu_ns / worker.clocked_loop_ns * present_ns;
    double operators_ns = used_ns;
    double tolerance_ns = 0;
    if (worker.is_sink) {
      const SinkFigures& sink = figures.sink;
      operators_ns -= sink.compute_ns * ratio(sink.sampled_compute_cpu_ns, sink.sampled_compute_ns);
      tolerance_ns = kOfTheSink * used_ns;
    }
    operators_ns = std::max(0.0, operators_ns);
    if (estimated_ns > operators_ns + tolerance_ns) {
      take_from(typical, take_from(others, estimated_ns - operators_ns - tolerance_ns));
    } else if (estimated_ns < operators_ns - tolerance_ns) {
      add_to(others, operators_ns - tolerance_ns - estimated_ns);
    }
  }
}

std::vector<double> run_queue_waits_ns(const SegmentFigures& figures) {
  std::vector<double> waits_ns(figures.cells.size(), 0.0);
  std::vector<std::vector<std::size_t>> cells(figures.workers.size());
  for (std::size_t i = 0; i < figures.cells.size(); ++i) cells[figures.cells[i].worker].push_back(i);
  for (std::size_t w = 0; w < figures.workers.size(); ++w)
    share_out(figures.workers[w].run_queue_ns.value_or(0), std::move(cells[w]), figures, waits_ns);
  return waits_ns;
}

}  // namespace headrace::profile
