// What happened between two moments of one segment: totals taken away from later totals.
#include <algorithm>

#include "headrace/profile/figures.h"

namespace headrace::profile {
namespace {

template <class T>
void take_away(T& from, const T& base) {
  from = from > base ? from - base : T{0};
}

void subtract_cell(CellFigures& cell, const CellFigures& base) {
  take_away(cell.items, base.items);
  take_away(cell.failures, base.failures);
  take_away(cell.busy_ns, base.busy_ns);
  take_away(cell.loop_items, base.loop_items);
  take_away(cell.sampled_items, base.sampled_items);
  take_away(cell.sampled_wall_ns, base.sampled_wall_ns);
  take_away(cell.sampled_cpu_ns, base.sampled_cpu_ns);
  cell.service.subtract(base.service);
  cell.transfer.subtract(base.transfer);
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

void subtract_handoff(HandoffFigures& handoff, const HandoffFigures& base) {
  for (double HandoffFigures::*field :
       {&HandoffFigures::batches, &HandoffFigures::message_bytes, &HandoffFigures::tensors,
        &HandoffFigures::counted, &HandoffFigures::pickle_ns, &HandoffFigures::pickle_cpu_ns,
        &HandoffFigures::pickle_cpu_reads, &HandoffFigures::send_ns, &HandoffFigures::receive_ns,
        &HandoffFigures::receive_cpu_ns, &HandoffFigures::receive_cpu_reads,
        &HandoffFigures::unused_batches}) {
    take_away(handoff.*field, base.*field);
  }
}

void subtract_sink(SinkFigures& sink, const SinkFigures& base) {
  const bool had_first = base.first_batch_ns > 0;
  const double later = sink.later_epochs_ns - base.later_epochs_ns;
  take_away(sink.epochs, base.epochs);
  take_away(sink.steps, base.steps);
  for (double SinkFigures::*field :
       {&SinkFigures::waits, &SinkFigures::computes, &SinkFigures::wait_ns, &SinkFigures::starved_ns,
        &SinkFigures::worker_start_ns, &SinkFigures::compute_ns, &SinkFigures::ready_calls,
        &SinkFigures::ready_wait_ns, &SinkFigures::sampled_compute_ns, &SinkFigures::sampled_compute_cpu_ns,
        &SinkFigures::quiet_steps, &SinkFigures::quiet_compute_ns, &SinkFigures::redirected_ns,
        &SinkFigures::ledger_unknown_ns, &SinkFigures::ledger_handoff_ns}) {
    take_away(sink.*field, base.*field);
  }
  for (double SinkFigures::*field :
       {&SinkFigures::whole_steps, &SinkFigures::marked_steps, &SinkFigures::tail_steps,
        &SinkFigures::marked_gap_ns, &SinkFigures::marked_forward_backward_ns,
        &SinkFigures::marked_tail_ns}) {
    take_away(sink.*field, base.*field);
  }
  for (std::size_t i = 0; i < sink.ledger_ns.size(); ++i) {
    take_away(sink.ledger_ns[i], base.ledger_ns[i]);
    take_away(sink.ledger_order_ns[i], base.ledger_order_ns[i]);
    take_away(sink.ledger_waiting_ns[i], base.ledger_waiting_ns[i]);
  }
  sink.wait.subtract(base.wait);
  // In a later epoch its own first batch is the start-up.
  if (had_first) {
    sink.first_batch_ns = std::max(0.0, later);
    sink.later_epochs_ns = 0;
  }
}

}  // namespace

void SegmentFigures::subtract(const SegmentFigures& base) {
  subtract_handoff(handoff, base.handoff);
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
      for (std::size_t i = 0; i < worker.state_ns.size(); ++i) take_away(worker.state_ns[i], old.state_ns[i]);
      take_away(worker.clocked_cpu_ns, old.clocked_cpu_ns);
      take_away(worker.clocked_loop_ns, old.clocked_loop_ns);
      if (worker.cpu_ns >= 0 && old.cpu_ns >= 0) take_away(worker.cpu_ns, old.cpu_ns);
      if (worker.run_queue_ns >= 0 && old.run_queue_ns >= 0) take_away(worker.run_queue_ns, old.run_queue_ns);
    }
  }
  for (QueueFigures& queue : queues) {
    for (const QueueFigures& old : base.queues) {
      if (old.index != queue.index || old.name != queue.name) continue;
      for (std::size_t i = 0; i < queue.time_at_ns.size() && i < old.time_at_ns.size(); ++i) {
        take_away(queue.time_at_ns[i], old.time_at_ns[i]);
      }
      take_away(queue.level_ns, old.level_ns);
      take_away(queue.empty_ns, old.empty_ns);
      take_away(queue.full_ns, old.full_ns);
      take_away(queue.puts, old.puts);
      take_away(queue.gets, old.gets);
      take_away(queue.loop_gets, old.loop_gets);
      queue.put_wait.subtract(old.put_wait);
      queue.get_wait.subtract(old.get_wait);
    }
  }
  subtract_sink(sink, base.sink);
  loop_ns -= std::min(loop_ns, base.loop_ns);
}

}  // namespace headrace::profile
