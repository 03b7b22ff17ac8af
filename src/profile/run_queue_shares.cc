#include "profile/run_queue_shares.h"

#include <algorithm>
#include <cstddef>

#include "profile/reconciled_cpu.h"
#include "profile/shares.h"

namespace headrace::profile {
namespace {

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

std::vector<double> run_queue_waits_ns(const SegmentFigures& figures) {
  std::vector<double> waits_ns(figures.cells.size(), 0.0);
  std::vector<std::vector<std::size_t>> cells(figures.workers.size());
  for (std::size_t i = 0; i < figures.cells.size(); ++i) cells[figures.cells[i].worker].push_back(i);
  for (std::size_t w = 0; w < figures.workers.size(); ++w)
    share_out(figures.workers[w].run_queue_ns.value_or(0), std::move(cells[w]), figures, waits_ns);
  return waits_ns;
}

}  // namespace headrace::profile
