#include "headrace/metrics/worker_probe.h"

#include <algorithm>

namespace headrace::metrics {

void WorkerProbe::bind(WorkerCell* cell, OperatorCell* operator_cells, const LoopClock* clock,
                       std::int64_t now) noexcept {
  *this = WorkerProbe();
  cell_ = cell;
  operator_cells_ = operator_cells;
  clock_ = clock;
  last_ns_ = now;
  const SeqlockWrite write(cell->lock);
  cell->account.store(static_cast<std::uint32_t>(WorkerState::idle));
  // Idle since the loop began: a worker that comes late was "not started" until now.
  cell->since_ns.store(0);
  cell->begun.store(clock->read(now).begun ? 1 : 0);
}

void WorkerProbe::take_over(WorkerCell& cell, OperatorCell* operator_cells,
                            std::span<OperatorCell* const> owned, const LoopClock& clock) noexcept {
  *this = WorkerProbe();
  cell_ = &cell;
  operator_cells_ = operator_cells;
  clock_ = &clock;
  owned_count_ = static_cast<int>(std::min<std::size_t>(owned.size(), kMaxCells));
  std::copy_n(owned.begin(), owned_count_, owned_.begin());
}

Relaxed<std::int64_t>& WorkerProbe::total_of(std::uint32_t account) noexcept {
  if (account >= kOperatorAccount) return operator_cells_[account - kOperatorAccount].busy_ns;
  return cell_->state_ns[account];
}

std::uint32_t WorkerProbe::resting_account() const noexcept {
  return loop_ != nullptr ? account_of(*loop_) : static_cast<std::uint32_t>(rest_state_);
}

void WorkerProbe::own(OperatorCell& cell) noexcept {
  for (int i = 0; i < owned_count_; ++i) {
    if (owned_[static_cast<std::size_t>(i)] == &cell) return;
  }
  if (owned_count_ == kMaxCells) return;
  owned_[static_cast<std::size_t>(owned_count_++)] = &cell;
  // A cell that is born late has been at 0 in every window closed so far.
  for (std::uint32_t i = 0; i < cell_->grid.closed.load(); ++i) {
    cell.windows.at(static_cast<int>(i), 0).store(0);
    cell.windows.at(static_cast<int>(i), 1).store(0);
  }
}

void WorkerProbe::close_windows(std::int64_t loop_ns) noexcept {
  const std::uint32_t open = cell_->account.load();
  const std::int64_t since = cell_->since_ns.load();
  cell_->grid.advance(
      loop_ns,
      [&](std::uint32_t index, std::int64_t boundary) {
        const int window = static_cast<int>(index);
        const std::int64_t running = std::max<std::int64_t>(0, boundary - since);
        for (std::uint32_t state = 0; state < kWorkerStates; ++state) {
          cell_->windows.at(window, static_cast<int>(state))
              .store(cell_->state_ns[state].load() + (open == state ? running : 0));
        }
        for (int i = 0; i < owned_count_; ++i) {
          OperatorCell& owned = *owned_[static_cast<std::size_t>(i)];
          owned.windows.at(window, 0).store(owned.busy_ns.load() + (open == account_of(owned) ? running : 0));
          owned.windows.at(window, 1).store(owned.loop_items.load());
        }
      },
      [&] {
        cell_->windows.halve();
        for (int i = 0; i < owned_count_; ++i) owned_[static_cast<std::size_t>(i)]->windows.halve();
      });
}

void WorkerProbe::restart() noexcept {
  for (auto& total : cell_->state_ns) total.store(0);
  cell_->clocked_cpu_ns.store(0);
  cell_->clocked_loop_ns.store(0);
  cpu_read_ns_ = -1;
  cell_->grid.reset();
  for (int i = 0; i < owned_count_; ++i) owned_[static_cast<std::size_t>(i)]->restart();
  cell_->since_ns.store(0);
  cell_->begun.store(1);
}

// Not before something happens: by then a loader's worker process has said which of its workers it is.
void WorkerProbe::claim_history(std::int64_t now) noexcept {
  history_wanted_ = false;
  TrackOwner owner;
  owner.kind = TrackKind::worker;
  owner.subject = cell_->loader.load();
  owner.number = owner.subject != 0 ? cell_->number.load() : -1;
  owner.pid = cell_->pid.load();
  owner.tid = cell_->tid.load();
  owner.process_start = cell_->process_start.load();
  history_ = store_.worker_history(store_.claim(owner, now));
  history_.open(moment_of(cell_->account.load()), now);
}

void WorkerProbe::move_to(std::uint32_t account, std::int64_t now, LoopClock::Reading reading) noexcept {
  if (history_wanted_) claim_history(now);
  // Before the lock is taken: making room in the track takes longer than readers should have to wait.
  history_.change(moment_of(account), now);
  const SeqlockWrite write(cell_->lock);
  // The account that was open when the loop began is counted from loop time 0 on.
  if (reading.begun && cell_->begun.load() == 0) restart();
  if (reading.loop_ns >= cell_->grid.next_boundary_ns()) close_windows(reading.loop_ns);
  const std::int64_t lasted = reading.loop_ns - cell_->since_ns.load();
  if (lasted > 0) total_of(cell_->account.load()).bump(lasted);
  cell_->account.store(account);
  // A clock that jumped back must not be counted twice: since only moves forward.
  if (lasted > 0) cell_->since_ns.store(reading.loop_ns);
}

void WorkerProbe::switch_to(std::uint32_t account, std::int64_t now) noexcept {
  move_to(account, now, clock_->read(now));
}

std::int64_t WorkerProbe::read_cpu(std::int64_t now) noexcept {
  const std::int64_t cpu = Clock::thread_cpu_ns();
  const LoopClock::Reading reading = clock_->read(now);
  const std::int64_t real = now - cpu_read_at_ns_;
  const std::int64_t loop = reading.loop_ns - cpu_read_loop_ns_;
  if (cpu_read_ns_ >= 0 && real > 0 && loop > 0) {
    // Share of the stretch in which the loop was not paused.
    const double running = std::min(1.0, static_cast<double>(loop) / static_cast<double>(real));
    const auto used = static_cast<double>(cpu - cpu_read_ns_) * running;
    cell_->clocked_cpu_ns.bump(std::clamp<std::int64_t>(static_cast<std::int64_t>(used), 0, loop));
    cell_->clocked_loop_ns.bump(loop);
  }
  cpu_read_ns_ = reading.begun ? cpu : -1;
  cpu_read_at_ns_ = now;
  cpu_read_loop_ns_ = reading.loop_ns;
  return cpu;
}

void WorkerProbe::charge_frame(std::int64_t now) noexcept {
  const std::int64_t lasted = std::max<std::int64_t>(0, now - last_ns_);
  last_ns_ = now;
  if (blocked_) {
    blocked_wall_ns_ += lasted;
  } else if (depth_ > 0) {
    top().own_ns += lasted;
  } else if (loop_ != nullptr) {
    loop_own_ns_ += lasted;
  }
}

void WorkerProbe::enter(OperatorCell& cell, std::int64_t now, std::int64_t label) noexcept {
  if (depth_ == kMaxDepth) {
    ++too_deep_;
    cell.items.bump(1);
    if (!clock_->read(now).paused) cell.loop_items.bump(1);
    return;
  }
  charge_frame(now);
  own(cell);
  const bool nested_in_sampled = depth_ > 0 && top().cpu_start_ns >= 0;
  if (label < 0 && depth_ > 0) label = top().label;
  Frame& frame = frames_[depth_++];
  frame.cell = &cell;
  frame.own_ns = 0;
  frame.nested_cpu_ns = 0;
  frame.nested_pool_ns = 0;
  frame.label = label;
  frame.loop_had_body = loop_had_body_;
  loop_had_body_ = true;
  const std::uint64_t newest = cell.sequence.count.load();
  const std::int64_t last_wall =
      newest == 0 ? 0
                  : static_cast<std::int64_t>(
                        cell.sequence.samples[(newest - 1) % ServiceSequence::kLength].wall_ns.load());
  const bool sample = cell.sampling.take(now, last_wall) || nested_in_sampled;
  frame.cpu_start_ns = sample ? read_cpu(now) : -1;
  frame.process_cpu_start_ns = sample && has_own_process() ? Clock::process_cpu_ns() : -1;
  move_to(account_of(cell), now, clock_->read(now));
}

void WorkerProbe::record_item(OperatorCell& cell, std::int64_t own_ns, std::int64_t cpu_ns, std::int64_t now,
                              bool paused, bool failed, std::int64_t label, std::int64_t pool_ns) noexcept {
  const std::uint64_t number = cell.items.load();
  cell.items.store(number + 1);
  if (failed) cell.failures.bump(1);
  if (number == 0) cell.first_done_ns.store(now);
  if (paused) return;  // an item of start-up: counted, kept out of the figures
  cell.loop_items.bump(1);
  cell.service.add(own_ns);
  if (label >= 0) cell.labelled.store(1);
  cell.slowest.add(label >= 0 ? static_cast<std::uint64_t>(label) : number, own_ns);
  if (cpu_ns < 0) return;
  const std::int64_t cpu = std::min(cpu_ns, own_ns);
  cell.sampled_wall_ns.bump(own_ns);
  cell.sampled_cpu_ns.bump(cpu);
  cell.sampled_pool_ns.bump(pool_ns);
  cell.sequence.add(number, own_ns, cpu);
}

std::int64_t WorkerProbe::leave(std::int64_t now, bool failed) noexcept {
  if (too_deep_ > 0) {
    --too_deep_;
    return 0;
  }
  if (depth_ == 0) return 0;
  charge_frame(now);
  const Frame& frame = frames_[--depth_];
  std::int64_t cpu_ns = -1;
  std::int64_t pool_ns = 0;
  if (frame.cpu_start_ns >= 0) {
    const std::int64_t inclusive = read_cpu(now) - frame.cpu_start_ns;
    cpu_ns = std::max<std::int64_t>(0, inclusive - frame.nested_cpu_ns);
    if (depth_ > 0) top().nested_cpu_ns += inclusive;
    if (frame.process_cpu_start_ns >= 0) {
      const std::int64_t pool = Clock::process_cpu_ns() - frame.process_cpu_start_ns - inclusive;
      if (depth_ > 0) top().nested_pool_ns += pool;
      pool_ns = std::max<std::int64_t>(0, pool - frame.nested_pool_ns);
    }
  }
  body_wall_ns_ += frame.own_ns;
  const LoopClock::Reading reading = clock_->read(now);
  move_to(depth_ > 0 ? account_of(*top().cell) : resting_account(), now, reading);
  record_item(*frame.cell, frame.own_ns, cpu_ns, now, reading.paused, failed, frame.label, pool_ns);
  return frame.own_ns;
}

void WorkerProbe::withdraw() noexcept {
  if (too_deep_ > 0) {
    --too_deep_;
    return;
  }
  if (depth_ == 0) return;
  loop_had_body_ = frames_[--depth_].loop_had_body;
  // The account alone: what has passed since it was opened is counted with the next switch, for the new one.
  const SeqlockWrite write(cell_->lock);
  const std::uint32_t account = depth_ > 0 ? account_of(*top().cell) : resting_account();
  cell_->account.store(account);
  history_.rename(moment_of(account));
}

void WorkerProbe::attribute(OperatorCell& cell, std::int64_t began, std::int64_t now, std::int64_t cpu_ns,
                            std::int64_t label, bool failed) noexcept {
  unblock(began);
  charge_frame(began);
  own(cell);
  switch_to(account_of(cell), began);
  // To the operator, not to whatever body is open around it.
  const std::int64_t lasted = std::max<std::int64_t>(0, now - last_ns_);
  last_ns_ = std::max(last_ns_, now);
  switch_to(depth_ > 0 ? account_of(*top().cell) : resting_account(), now);
  record_item(cell, lasted, cpu_ns, now, clock_->read(now).paused, failed, label);
}

void WorkerProbe::abandon(std::int64_t now) noexcept {
  if (too_deep_ > 0) {
    --too_deep_;
    return;
  }
  if (depth_ == 0) return;
  charge_frame(now);
  body_wall_ns_ += frames_[--depth_].own_ns;
  switch_to(depth_ > 0 ? account_of(*top().cell) : resting_account(), now);
}

void WorkerProbe::transferred(OperatorCell& cell, const TransferRecord& record, std::int64_t now) noexcept {
  if (clock_->read(now).paused) return;
  own(cell);
  cell.transfer.add(record);
}

void WorkerProbe::block(WorkerState state, std::int64_t now) noexcept {
  charge_frame(now);
  blocked_ = true;
  switch_to(static_cast<std::uint32_t>(state), now);
}

void WorkerProbe::unblock(std::int64_t now) noexcept {
  if (!blocked_) return;
  charge_frame(now);
  blocked_ = false;
  switch_to(depth_ > 0 ? account_of(*top().cell) : resting_account(), now);
}

void WorkerProbe::rest_in(OperatorCell* loop_cell, WorkerState state, std::int64_t now) noexcept {
  // A loop may end on a thread whose recording was switched off, or moved to another run, meanwhile.
  if (cell_ == nullptr) return;
  // A sink asks for the state that it is in already once per step.
  if (loop_ == loop_cell && rest_state_ == state && depth_ == 0 && !blocked_) return;
  charge_frame(now);
  loop_ = loop_cell;
  rest_state_ = state;
  announced_puts_ = false;
  if (loop_ != nullptr) own(*loop_);
  if (depth_ == 0 && !blocked_) switch_to(resting_account(), now);
}

void WorkerProbe::loop_item(std::int64_t now, bool counts, bool first_counts) noexcept {
  if (loop_ == nullptr || depth_ > 0) return;
  charge_frame(now);
  // A loop that never waits changes its account nowhere else: it would miss that the loop has begun, and its
  // windows.
  const LoopClock::Reading reading = clock_->read(now);
  const bool unbegun = reading.begun && cell_->begun.load() == 0;
  if (unbegun || reading.loop_ns >= cell_->grid.next_boundary_ns()) switch_to(cell_->account.load(), now);
  // CPU time of the loop itself is known only for items in which no annotated body ran.
  std::int64_t cpu_ns = -1;
  if (loop_cpu_start_ns_ >= 0 && !loop_had_body_) cpu_ns = read_cpu(now) - loop_cpu_start_ns_;
  if (counts && loop_open_) {
    record_item(*loop_, loop_own_ns_, cpu_ns, now, reading.paused, false, loop_label_);
  } else if (counts && first_counts) {
    loop_->items.bump(1);
  }
  const bool sample = loop_->sampling.take(now, loop_own_ns_);
  loop_cpu_start_ns_ = sample ? read_cpu(now) : -1;
  loop_own_ns_ = 0;
  loop_label_ = -1;
  loop_had_body_ = false;
  loop_open_ = true;
}

void WorkerProbe::finish(std::int64_t now) noexcept {
  if (cell_ == nullptr) return;
  depth_ = 0;
  blocked_ = false;
  loop_ = nullptr;
  switch_to(static_cast<std::uint32_t>(WorkerState::idle), now);
  if (history_.bound()) {
    history_.close(static_cast<std::uint32_t>(WorkerState::idle), now);
    HistoryStore::release(*history_.track());
    history_ = {};
  }
  cell_->ended_ns.store(now);
  cell_->last_alive_ns.store(now);
  // Release: a reader that sees `finished` (to fold the cells away) sees everything that this thread wrote.
  cell_->life.store(static_cast<std::uint32_t>(WorkerLife::finished), std::memory_order_release);
  cell_ = nullptr;
}

}  // namespace headrace::metrics
