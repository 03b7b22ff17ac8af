#include "headrace/profile/aggregate_finished.h"

#include <algorithm>
#include <cstddef>

#include "profile/totals.h"

namespace headrace::profile {
namespace {

using metrics::kWindows;
using metrics::OperatorCell;
using metrics::WindowLog;
using metrics::WorkerCell;

/// Running total of a field at the end of window `index`, extended by the final total behind the last one.
template <int kFields>
std::int64_t total_at(const WindowLog<kFields>& log, std::uint32_t closed, int index, int field,
                      std::int64_t last) {
  return static_cast<std::uint32_t>(index) < closed ? log.get(index, field) : last;
}

/// The record from byte `kFrom` on. Word by word and atomic: other processes may be reading it at the moment.
template <std::size_t kFrom, class Record>
void zero_from(Record& record) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  static_assert(kFrom % kWord == 0 && sizeof(Record) % kWord == 0, "words end where the record does");
  for (std::size_t at = kFrom; at < sizeof(Record); at += kWord) {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(&record) + at), 0U,
                     __ATOMIC_RELAXED);
  }
}

/// Keeps every second entry and fills the freed half with the final total.
template <int kFields, class Final>
void halve_filled(WindowLog<kFields>& log, Final&& final_total) noexcept {
  log.halve();
  for (int i = kWindows / 2; i < kWindows; ++i) {
    for (int field = 0; field < kFields; ++field) log.at(i, field).store(final_total(field));
  }
}

std::int64_t cell_total(const OperatorCell& cell, int field) {
  return field == 0 ? cell.busy_ns.load() : cell.loop_items.load();
}

}  // namespace

void clear_worker(WorkerCell& worker) noexcept {
  zero_from<offsetof(WorkerCell, pid)>(worker);
  begin_unknown<WorkerTotals>(worker);
}

void clear_cell(OperatorCell& cell) noexcept { zero_from<offsetof(OperatorCell, operator_id)>(cell); }

void clear_sink(metrics::SinkCell& sink) noexcept { zero_from<0>(sink); }

void empty_cell(OperatorCell& cell) noexcept {
  cell.sampled.store(0);
  zero_from<offsetof(OperatorCell, samples)>(cell);
}

void clear_queue(metrics::QueueCell& queue) noexcept {
  zero_from<offsetof(metrics::QueueCell, begun)>(queue);
}

void clear_remote(metrics::RemoteCell& remote) noexcept {
  zero_from<offsetof(metrics::RemoteCell, bytes)>(remote);
}

void forget_operators(metrics::SinkCell& sink) noexcept {
  for (auto* ledger : {&sink.ledger, &sink.ledger_order, &sink.ledger_waiting}) {
    for (auto& charged : *ledger) {
      sink.ledger_unknown_ns.bump(charged.load());
      charged.store(0);
    }
  }
  for (auto& bits : sink.operators) bits.store(0);
  sink.queues.store(0);
}

void clear_framework_facts(LoaderRecord& loader) noexcept {
  loader.has_own_graph.store(0);
  loader.gaps.store(0);
  loader.workers.store(0);
  loader.batch_bytes.store(0);
  loader.ceiling_ns.store(0);
  zero_from<0>(loader.model);
  zero_from<0>(loader.facts);
  zero_from<0>(loader.handoff);
}

void restart_worker(WorkerCell& worker) noexcept {
  for (auto& total : worker.state_ns) total.store(0);
  for (int i = 0; i < kWindows; ++i) {
    for (int field = 0; field < static_cast<int>(metrics::kWorkerStates); ++field)
      worker.windows.at(i, field).store(0);
  }
  worker.begun.store(1);
}

void restart_cell(OperatorCell& cell) noexcept {
  cell.restart();
  for (int i = 0; i < kWindows; ++i) {
    for (int field = 0; field < 2; ++field) cell.windows.at(i, field).store(0);
  }
}

// The retired worker has no open state: its windows hold the final totals in every window after the last
// event.
void widen_retired(WorkerCell& retired, std::span<OperatorCell* const> cells,
                   std::uint32_t doublings) noexcept {
  while (retired.grid.doublings.load() < doublings) {
    halve_filled(retired.windows,
                 [&](int field) { return retired.state_ns[static_cast<std::size_t>(field)].load(); });
    for (OperatorCell* cell : cells) {
      halve_filled(cell->windows, [&](int field) { return cell_total(*cell, field); });
    }
    retired.grid.doublings.bump(1);
  }
}

void align_windows(const WorkerCell& retired, const WorkerCell& worker, OperatorCell& cell) noexcept {
  std::uint32_t closed = worker.grid.closed.load();
  for (std::uint32_t d = worker.grid.doublings.load(); d < retired.grid.doublings.load(); ++d) {
    cell.windows.halve();
    closed /= 2;
  }
  for (int i = static_cast<int>(closed); i < kWindows; ++i) {
    for (int field = 0; field < 2; ++field) cell.windows.at(i, field).store(cell_total(cell, field));
  }
}

void add_cell(OperatorCell& target, const OperatorCell& cell) noexcept {
  for (int i = 0; i < kWindows; ++i) {
    for (int field = 0; field < 2; ++field) target.windows.at(i, field).bump(cell.windows.get(i, field));
  }
  fold<CellTotals>(target, cell);
  const std::int64_t first = cell.first_done_ns.load();
  if (first > 0 && (target.first_done_ns.load() == 0 || first < target.first_done_ns.load()))
    target.first_done_ns.store(first);
  target.labelled.store(std::max(target.labelled.load(), cell.labelled.load()));
  target.sampled.store(std::max(target.sampled.load(), cell.sampled.load()));
  if (cell.file_system.load() != 0) target.file_system.store(cell.file_system.load());
  for (const auto& item : cell.slowest.items) target.slowest.add(item.index.load(), item.ns.load());
}

void add_worker(WorkerCell& retired, WorkerCell& worker) noexcept {
  const metrics::SeqlockWrite write(retired.lock);
  std::uint32_t closed = worker.grid.closed.load();
  std::uint32_t doublings = worker.grid.doublings.load();
  while (doublings < retired.grid.doublings.load()) {
    worker.windows.halve();
    closed /= 2;
    ++doublings;
  }
  for (int i = 0; i < kWindows; ++i) {
    for (std::uint32_t state = 0; state < metrics::kWorkerStates; ++state) {
      const int field = static_cast<int>(state);
      retired.windows.at(i, field).bump(
          total_at(worker.windows, closed, i, field, worker.state_ns[state].load()));
    }
  }
  fold<WorkerTotals>(retired, worker);
  retired.begun.store(std::max(retired.begun.load(), worker.begun.load()));
  for (const metrics::WorkerEdge& from : worker.edges) {
    if (from.queue.load() == 0) continue;
    for (metrics::WorkerEdge& to : retired.edges) {
      if (to.queue.load() == 0) {
        to.is_put.store(from.is_put.load());
        to.queue.store(from.queue.load());
      }
      if (to.queue.load() == from.queue.load() && to.is_put.load() == from.is_put.load()) {
        to.items.bump(from.items.load());
        break;
      }
    }
  }
}

void add_sink(metrics::SinkCell& target, const metrics::SinkCell& sink) noexcept {
  fold<SinkFigures>(target, sink);
  target.failed.bump(sink.failed.load());
  // The first batch of the target stays its start-up; this one is of a later loop.
  target.first_batch_ns.bump(-sink.first_batch_ns.load());
  target.later_epochs_ns.bump(sink.first_batch_ns.load());
  for (const metrics::LongestWait& wait : sink.longest)
    target.remember_longest(wait.wait_ns.load(), wait.at_ns.load(), wait.step.load());
}

}  // namespace headrace::profile
