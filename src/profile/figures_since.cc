// Figures between two moments of one segment: totals subtracted from later totals.
#include <algorithm>

#include "headrace/profile/figures.h"
#include "profile/totals.h"

namespace headrace::profile {
namespace {

void subtract_cell(CellFigures& cell, const CellFigures& base) {
  subtract<CellTotals>(cell, base);
  const auto before = [&](const ServiceSample& sample) { return sample.index < base.items; };
  std::erase_if(cell.sequence, before);
  if (!cell.labelled) {
    std::erase_if(cell.slowest, before);
    return;
  }
  // Named by the framework's index: those that were there before are known by index and time.
  std::erase_if(cell.slowest, [&](const ServiceSample& sample) {
    return std::any_of(base.slowest.begin(), base.slowest.end(), [&](const ServiceSample& old) {
      return old.index == sample.index && old.wall_s == sample.wall_s;
    });
  });
}

void subtract_sink(SinkFigures& sink, const SinkFigures& base) {
  const bool had_first = base.first_batch_ns > 0;
  const double later = sink.later_epochs_ns - base.later_epochs_ns;
  subtract<SinkFigures>(sink, base);
  // In a later epoch its own first batch is the start-up.
  if (had_first) {
    sink.first_batch_ns = std::max(0.0, later);
    sink.later_epochs_ns = 0;
  }
}

}  // namespace

void SegmentFigures::subtract(const SegmentFigures& base) {
  profile::subtract(handoff, base.handoff);
  // Each cell stands where it stood; one that is another operator's by now began again.
  for (std::size_t i = 0; i < std::min(remotes.size(), base.remotes.size()); ++i) {
    if (remotes[i].owner == base.remotes[i].owner)
      profile::subtract<RemoteTotals>(remotes[i], base.remotes[i]);
  }
  if (!base.begun && begun) {
    // Nothing that was counted before the loop began is in the totals any more; the sink's own counts are.
    subtract_sink(sink, base.sink);
    return;
  }
  for (CellFigures& cell : cells) {
    for (const CellFigures& old : base.cells) {
      const WorkerFigures& mine = workers[cell.worker];
      const WorkerFigures& its = base.workers[old.worker];
      if (old.cell == cell.cell && its.index == mine.index && its.started_ns == mine.started_ns) {
        subtract_cell(cell, old);
      }
    }
  }
  for (WorkerFigures& worker : workers) {
    for (const WorkerFigures& old : base.workers) {
      if (old.index != worker.index || old.started_ns != worker.started_ns) continue;
      profile::subtract<WorkerTotals>(worker, old);
    }
  }
  for (QueueFigures& queue : queues) {
    for (const QueueFigures& old : base.queues) {
      if (old.index != queue.index || old.name != queue.name) continue;
      profile::subtract<QueueTotals>(queue, old);
    }
  }
  subtract_sink(sink, base.sink);
  loop_ns -= std::min(loop_ns, base.loop_ns);
}

}  // namespace headrace::profile
