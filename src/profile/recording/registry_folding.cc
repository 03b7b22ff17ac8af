// How a registry makes room: what is closed or finished is added up in one record, and its own is free again.
#include <algorithm>
#include <vector>

#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/aggregate_finished.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/registry.h"
#include "profile/record_life.h"

namespace headrace::profile {

bool Registry::is_crowded() const noexcept {
  const auto used_workers = std::ranges::count_if(segment_.known_workers(), [](const auto& worker) {
    return worker.life.load(std::memory_order_relaxed) != 0;
  });
  const auto used_cells =
      std::ranges::count_if(segment_.known_cells(), [](const auto& cell) { return cell.owner.load() != 0; });
  return used_workers > kMaxWorkers * 3 / 4 || used_cells > kMaxCells * 3 / 4;
}

// Workers that stood at the same place of the graph are folded together, so the graph survives them.
metrics::WorkerCell* Registry::retired_worker(const metrics::WorkerCell& leaving) {
  const auto same_place = [&](const metrics::WorkerCell& worker) {
    for (std::size_t i = 0; i < worker.edges.size(); ++i) {
      if (worker.edges[i].queue.load() != leaving.edges[i].queue.load()) return false;
      if (worker.edges[i].is_put.load() != leaving.edges[i].is_put.load()) return false;
    }
    return true;
  };
  for (metrics::WorkerCell& worker : segment_.known_workers()) {
    const bool is_retired =
        worker.life.load(std::memory_order_acquire) == life_of(metrics::WorkerLife::retired);
    if (is_retired && same_place(worker)) return &worker;
  }
  metrics::WorkerCell* worker = claim_worker(metrics::Clock::now_ns());
  if (worker == nullptr) return nullptr;
  worker->pid.store(0);
  worker->tid.store(0);
  worker->ended_ns.store(worker->started_ns.load());
  worker->grid.closed.store(metrics::kWindows);
  worker->grid.doublings.store(leaving.grid.doublings.load());
  worker->life.store(life_of(metrics::WorkerLife::retired), std::memory_order_release);
  return worker;
}

std::vector<metrics::OperatorCell*> Registry::cells_of(std::uint32_t worker) {
  std::vector<metrics::OperatorCell*> owned;
  for (metrics::OperatorCell& cell : segment_.known_cells()) {
    if (cell.owner.load() == worker + 1) owned.push_back(&cell);
  }
  return owned;
}

// A worker that died in the middle of something: what was open is counted to its last sign of life.
void Registry::settle_gone(std::uint32_t index) {
  metrics::WorkerCell& worker = segment_.workers()[index];
  if (!is_live(worker) || worker.account.load() >= metrics::kOperatorAccount + kMaxCells) return;
  metrics::WorkerProbe probe;
  probe.take_over(worker, segment_.cells(), cells_of(index), segment_.header().loop_clock);
  probe.finish(worker.last_alive_ns.load());
}

// A worker that did nothing since the loop began still holds what it counted during start-up.
void Registry::forget_start_up(std::uint32_t index) {
  metrics::WorkerCell& worker = segment_.workers()[index];
  if (worker.begun.load() != 0) return;
  for (metrics::OperatorCell* cell : cells_of(index)) restart_cell(*cell);
  restart_worker(worker);
}

void Registry::fold_worker(std::uint32_t index) {
  metrics::WorkerCell& worker = segment_.workers()[index];
  metrics::WorkerCell* retired = retired_worker(worker);
  if (retired == nullptr) return;
  settle_gone(index);
  const bool begun = segment_.header().loop_clock.read(0).begun;
  const auto retired_owner = static_cast<std::uint32_t>(retired - segment_.workers()) + 1;
  if (begun) forget_start_up(index);
  if (begun) forget_start_up(retired_owner - 1);
  const std::vector<metrics::OperatorCell*> retired_cells = cells_of(retired_owner - 1);
  widen_retired(*retired, retired_cells, worker.grid.doublings.load());
  for (metrics::OperatorCell* owned : cells_of(index)) {
    metrics::OperatorCell& cell = *owned;
    align_windows(*retired, worker, cell);
    const auto same = std::find_if(retired_cells.begin(), retired_cells.end(), [&](const auto* candidate) {
      return candidate->operator_id.load() == cell.operator_id.load() &&
             candidate->place.load() == cell.place.load() && candidate->is_loop.load() == cell.is_loop.load();
    });
    if (same == retired_cells.end()) {
      // The first one to go becomes the retired cell itself; only its owner changes.
      cell.owner.store(retired_owner);
      continue;
    }
    add_cell(**same, cell);
    // Emptied before it is free: between a claim and its first item a reader must not see the old owner's
    // figures.
    clear_cell(cell);
    // Release pairs with the acquire of the next claim: the sums above are done with this cell.
    std::atomic_thread_fence(std::memory_order_release);
    cell.owner.store(0);
  }
  add_worker(*retired, worker);
  segment_.header().retired_workers.bump(1);
  worker.life.store(life_of(metrics::WorkerLife::free), std::memory_order_release);
}

int Registry::fold_finished_workers() {
  int folded = 0;
  for (metrics::WorkerCell& worker : segment_.known_workers()) {
    const std::uint32_t life = worker.life.load(std::memory_order_acquire);
    bool gone = life == life_of(metrics::WorkerLife::finished);
    if (life == life_of(metrics::WorkerLife::live) && worker.pid.load() != current_pid()) {
      gone = !process_alive(worker.pid.load(), worker.process_start.load());
    }
    if (!gone) continue;
    fold_worker(static_cast<std::uint32_t>(&worker - segment_.workers()));
    ++folded;
  }
  return folded;
}

bool Registry::owned_here() const noexcept { return segment_.header().owner_pid == current_pid(); }

bool Registry::fold_loader() {
  if (!owned_here()) return false;
  LoaderRecord* target = nullptr;
  LoaderRecord* oldest = nullptr;
  for (LoaderRecord& record : segment_.known_loaders()) {
    if (record.life.load(std::memory_order_acquire) != life_of(RecordLife::closed)) continue;
    if (record.folded.load() > 0) {
      target = &record;
    } else if (oldest == nullptr || record.sink.last_event_ns.load() < oldest->sink.last_event_ns.load()) {
      oldest = &record;
    }
  }
  if (oldest == nullptr) return false;
  forget_loader(static_cast<std::uint32_t>(oldest - segment_.loaders()));
  if (target == nullptr) {
    oldest->name.assign("(earlier loaders)");
    oldest->identity.store(0);
    oldest->folded.store(1);
    return true;
  }
  add_sink(target->sink, oldest->sink);
  target->folded.bump(1);
  clear_sink(oldest->sink);
  oldest->life.store(life_of(RecordLife::free), std::memory_order_release);
  return true;
}

// Its numbers go to others: what belonged to this one must not show as theirs.
void Registry::forget_loader(std::uint32_t index) {
  LoaderRecord& loader = segment_.loaders()[index];
  clear_framework_facts(loader);
  forget_operators(loader.sink);
  for (const auto kind :
       {metrics::TrackKind::get_next, metrics::TrackKind::batches, metrics::TrackKind::worker})
    segment_.history().disown(kind, index + 1);
  constexpr std::uint32_t kNobodys = ~std::uint32_t{0};
  const std::uint32_t its = index + 1;
  for (metrics::WorkerCell& worker : segment_.known_workers()) {
    if (worker.loader.load() == its) worker.loader.store(kNobodys);
  }
  for (std::uint32_t i = 0; i < kMaxOperators; ++i) {
    OperatorRecord& record = segment_.operators()[i];
    if (!is_live(record.life.load(std::memory_order_acquire))) continue;
    if (record.loader.load() == its || i + 1 == loader.source_operator.load()) free_operator(i);
  }
  loader.source_operator.store(0);
  for (QueueRecord& record : segment_.known_queues()) {
    if (!is_live(record.life.load(std::memory_order_acquire)) || record.loader.load() != its) continue;
    record.loader.store(kNobodys);
    if (record.life.load(std::memory_order_acquire) == life_of(RecordLife::closed))
      free_queue(static_cast<std::uint32_t>(&record - segment_.queues()));
  }
}

// Cells of workers that are gone are freed. Those of a thread that goes on stay its own, emptied: it may run
// whatever operator gets this number next.
void Registry::free_operator(std::uint32_t op) {
  for (metrics::OperatorCell& cell : segment_.known_cells()) {
    const std::uint32_t owner = cell.owner.load();
    if (owner == 0 || owner > kMaxWorkers || cell.operator_id.load() != op) continue;
    const bool goes_on = is_live(segment_.workers()[owner - 1]);
    empty_cell(cell);
    if (goes_on) continue;
    // Release pairs with the acquire of the next claim: nobody reads the old figures there.
    std::atomic_thread_fence(std::memory_order_release);
    cell.owner.store(0);
  }
  for (std::uint32_t i = 0; i < segment_.given_out(Section::remotes); ++i) {
    metrics::RemoteCell& cell = segment_.remotes()[i];
    if (cell.owner.load(std::memory_order_relaxed) != op + 1) continue;
    clear_remote(cell);
    // Release pairs with the acquire of the next claim: nobody reads the old figures there.
    cell.owner.store(0, std::memory_order_release);
  }
  segment_.operators()[op].life.store(life_of(RecordLife::free), std::memory_order_release);
}

void Registry::free_queue(std::uint32_t queue) {
  QueueRecord& record = segment_.queues()[queue];
  segment_.history().disown(metrics::TrackKind::queue, queue + 1);
  for (metrics::WorkerCell& worker : segment_.known_workers()) {
    for (metrics::WorkerEdge& edge : worker.edges) {
      if (edge.queue.load() == queue + 1) edge.items.store(0);
    }
  }
  clear_queue(record.cell);
  record.life.store(life_of(RecordLife::free), std::memory_order_release);
}

}  // namespace headrace::profile
