#include "headrace/metrics/sink_probe.h"

#include <algorithm>
#include <utility>

namespace headrace::metrics {

namespace {

/// Time of a generator around a queue's get if it only hands the batch on.
constexpr std::int64_t kTakingNs = 50'000;

}  // namespace

void SinkProbe::bind(SinkCell* cell, WorkerProbe* worker, OperatorCell* source, const LoopClock* clock,
                     SinkSurroundings* surroundings, bool followed, int loader) noexcept {
  cell_ = cell;
  worker_ = worker;
  source_ = source;
  clock_ = clock;
  surroundings_ = surroundings;
  followed_ = followed;
  loader_ = loader;
}

void SinkProbe::begin_epoch(std::int64_t now) noexcept {
  if (cell_ == nullptr) return;
  epoch_ns_ = now;
  delivered_ns_ = now;
  in_loop_ = true;
  steady_ = false;
  parts_.join(*marks_);
  asked_ = false;
  cell_->active.bump(1);
  if (cell_->first_iter_ns.load() == 0) cell_->first_iter_ns.store(now);
  cell_->last_event_ns.store(now);
}

// Called when a wait or a compute that may span boundaries ends: what was open at a boundary is known by
// then.
void SinkProbe::close_windows(std::int64_t loop_ns, Span open) noexcept {
  const std::int64_t since = cell_->since_ns.load();
  cell_->grid.advance(
      loop_ns,
      [&](std::uint32_t index, std::int64_t boundary) {
        const int window = static_cast<int>(index);
        const auto until_boundary = [&](std::int64_t whole) {
          return std::clamp<std::int64_t>(boundary - since, 0, whole);
        };
        cell_->windows.at(window, 0).store(cell_->waits.load());
        cell_->windows.at(window, 1).store(cell_->wait_ns.load() + until_boundary(open.wait_ns));
        cell_->windows.at(window, 2).store(cell_->starved_ns.load() + until_boundary(open.starved_ns));
        cell_->windows.at(window, 3).store(cell_->compute_ns.load() + until_boundary(open.compute_ns));
      },
      [&] { cell_->windows.halve(); });
}

void SinkProbe::close_compute(std::int64_t now) noexcept {
  if (!computing_) return;
  computing_ = false;
  const std::int64_t compute = std::max<std::int64_t>(0, now - delivered_ns_ - excluded_ns_);
  const StepListener::Cuts cuts = parts_.cuts(delivered_ns_, now);
  const std::uint64_t step = static_cast<std::uint64_t>(cell_->computes.load());
  std::int64_t cpu = -1;
  bool quiet = false;
  if (cpu_at_delivery_ns_ >= 0) {
    cpu = std::clamp<std::int64_t>(Clock::thread_cpu_ns() - cpu_at_delivery_ns_, 0, compute);
    quiet = busy_at_delivery_ == 0 && surroundings_->busy_workers() == 0;
  }
  const SeqlockWrite write(cell_->lock);
  const std::int64_t loop_ns = clock_->read(now).loop_ns;
  if (loop_ns >= cell_->grid.next_boundary_ns()) close_windows(loop_ns, {0, 0, compute});
  cell_->computes.bump(1);
  cell_->compute_ns.bump(compute);
  if (cpu >= 0) {
    cell_->sampled_compute_ns.bump(compute);
    cell_->sampled_compute_cpu_ns.bump(cpu);
  }
  if (quiet) {
    cell_->quiet_steps.bump(1);
    cell_->quiet_compute_ns.bump(compute);
  }
  if (steady_step_) {
    add_parts(cuts, compute);
    cell_->step.add(last_wait_ns_ + compute);
  }
  SinkCell::Step& sample = cell_->sequence[step % SinkCell::kSequence];
  sample.wait_ns.store(static_cast<float>(last_wait_ns_));
  sample.compute_ns.store(static_cast<float>(compute));
  sample.cpu.store(cpu, compute);
  sample.before_forward.store(cuts.before_forward_ns, compute);
  sample.tail.store(cuts.tail_ns, compute);
}

// Within the caller's SeqlockWrite.
void SinkProbe::add_parts(StepListener::Cuts cuts, std::int64_t compute) noexcept {
  cell_->whole_steps.bump(1);
  if (cuts.before_forward_ns < 0) return;
  const std::int64_t before = std::min(cuts.before_forward_ns, compute);
  const std::int64_t tail = std::clamp<std::int64_t>(cuts.tail_ns, 0, compute - before);
  cell_->marked_steps.bump(1);
  cell_->marked_gap_ns.bump(last_wait_ns_ + before);
  cell_->marked_forward_backward_ns.bump(compute - before - tail);
  cell_->marked_tail_ns.bump(tail);
  if (cuts.tail_ns >= 0) cell_->tail_steps.bump(1);
}

void SinkProbe::tell_device(std::int64_t ns, std::int64_t host_ns) noexcept {
  if (cell_ == nullptr) return;
  const SeqlockWrite write(cell_->lock);
  cell_->device_steps.bump(1);
  cell_->device_ns.bump(ns);
  cell_->device_host_ns.bump(host_ns);
}

void SinkProbe::begin_wait(std::int64_t now) noexcept {
  if (cell_ == nullptr || worker_ == nullptr || !in_loop_) return;
  // A loop begins when it asks: some programs make iterators and take nothing from them.
  if (!std::exchange(asked_, true)) cell_->epochs.bump(1);
  close_compute(now);
  waiting_ = true;
  took_ = false;
  source_own_ns_ = 0;
  wait_began_ns_ = now;
  blocked_at_begin_ns_ = worker_->blocked_wall_ns();
  bodies_at_begin_ns_ = worker_->body_wall_ns();
  candidate_ = followed_ ? SinkSurroundings::kNobody : surroundings_->in_service(loader_);
  if (steady_) {
    const SeqlockWrite write(cell_->lock);
    cell_->since_ns.store(clock_->read(now).loop_ns);
    cell_->waiting.store(1);
  }
  if (source_ != nullptr) {
    worker_->enter(*source_, now);
  } else {
    worker_->rest_in(nullptr, WorkerState::computing, now);
  }
}

void SinkProbe::end_wait(std::int64_t now, bool delivered, bool failed, int ready) noexcept {
  finish_wait(now, delivered, failed, ready, nullptr);
}

void SinkProbe::end_wait(std::int64_t now, bool delivered, bool failed, const WaitCharges& charges) noexcept {
  finish_wait(now, delivered, failed, charges.ready ? 1 : 0, &charges);
}

void SinkProbe::resume(std::int64_t now) noexcept {
  if (cell_ == nullptr || in_loop_) return;
  epoch_ns_ = now;
  delivered_ns_ = now;
  in_loop_ = true;
  steady_ = false;
  parts_.join(*marks_);
  cell_->active.bump(1);
}

void SinkProbe::finish_wait(std::int64_t now, bool delivered, bool failed, int ready,
                            const WaitCharges* charges) noexcept {
  if (cell_ == nullptr || worker_ == nullptr || !waiting_) return;
  waiting_ = false;
  if (source_ != nullptr) {
    if (!delivered && !failed) worker_->abandon(now);
    const std::int64_t own = delivered || failed ? worker_->leave(now, failed) : 0;
    source_own_ns_ = own;
    if (steady_ && delivered && candidate_ != SinkSurroundings::kNobody && own > 0) {
      cell_->ledger[static_cast<std::size_t>(candidate_) % kLedgerOperators].bump(own);
      cell_->redirected_ns.bump(own);
    }
  }
  if (failed) cell_->failed.bump(1);
  bool was_ready = false;
  if (!delivered) {
    // The call that ends the loop brings no batch: it is not a step and no wait for one.
    const SeqlockWrite write(cell_->lock);
    cell_->waiting.store(0);
  } else if (steady_) {
    was_ready = deliver(now, ready, charges);
  } else {
    deliver_first(now);
  }
  if (delivered) {
    remember(now, was_ready, charges);
    start_step(now);
  }
  cell_->last_event_ns.store(now);
  if (!delivered) end_loop(now);
}

void SinkProbe::deliver_first(std::int64_t now) noexcept {
  const std::int64_t wait = std::max<std::int64_t>(0, now - epoch_ns_);
  if (cell_->steps.load() == 0 || cell_->first_batch_ns.load() == 0) {
    cell_->first_batch_ns.store(std::max<std::int64_t>(1, wait));
  } else {
    cell_->later_epochs_ns.bump(wait);
  }
  cell_->steps.bump(1);
  steady_ = true;
  steady_step_ = false;
  last_wait_ns_ = 0;
  surroundings_->loop_began(now);
  const SeqlockWrite write(cell_->lock);
  cell_->since_ns.store(clock_->read(now).loop_ns);
}

void SinkProbe::charge(const WaitCharges& charges, std::int64_t wait, std::int64_t worked) noexcept {
  // This thread's own work (a sampler that draws the next numbers) comes after the batch is there,
  // and is in its operator's own time.
  std::int64_t left = wait - worked;
  for (std::size_t i = 0; i < charges.count; ++i) {
    const WaitCharges::Charge& one = charges.charges[i];
    const bool after = one.what == WaitCharges::What::handoff;
    const std::int64_t ns = std::clamp<std::int64_t>(one.ns - (after ? worked : 0), 0, left);
    left -= ns;
    if (one.what == WaitCharges::What::handoff) {
      cell_->ledger_handoff_ns.bump(ns);
      continue;
    }
    if (one.op < 0 || one.op >= kLedgerOperators) {
      left += ns;
      continue;
    }
    auto& ledger = one.what == WaitCharges::What::order                ? cell_->ledger_order
                   : one.what == WaitCharges::What::waiting_for_worker ? cell_->ledger_waiting
                                                                       : cell_->ledger;
    ledger[static_cast<std::size_t>(one.op)].bump(ns);
  }
  cell_->ledger_unknown_ns.bump(left);
}

bool SinkProbe::deliver(std::int64_t now, int ready, const WaitCharges* charges) noexcept {
  const std::int64_t wait = std::max<std::int64_t>(0, now - wait_began_ns_);
  const std::int64_t blocked = std::min(wait, worker_->blocked_wall_ns() - blocked_at_begin_ns_);
  // Ready: the batch was only taken out of a queue. A generator around the queue may do that as well.
  const std::int64_t others_worked = worker_->body_wall_ns() - bodies_at_begin_ns_ - source_own_ns_;
  const bool only_took = source_ == nullptr || (took_ && source_own_ns_ <= kTakingNs);
  const bool was_ready = ready >= 0 ? ready != 0 : blocked == 0 && others_worked <= 0 && only_took;
  // A loader that tells whether a batch is ready waits for it where nobody sees its thread wait.
  const bool waits_unseen = ready >= 0 && source_ == nullptr;
  const std::int64_t waited =
      waits_unseen ? wait - std::clamp<std::int64_t>(others_worked, 0, wait) : blocked;
  const std::int64_t loop_ns = clock_->read(now).loop_ns;
  const std::int64_t worked = charges == nullptr ? 0 : std::clamp<std::int64_t>(others_worked, 0, wait);

  const SeqlockWrite write(cell_->lock);
  if (loop_ns >= cell_->grid.next_boundary_ns()) close_windows(loop_ns, {wait, was_ready ? worked : wait, 0});
  cell_->waiting.store(0);
  cell_->since_ns.store(loop_ns);
  cell_->steps.bump(1);
  cell_->waits.bump(1);
  cell_->wait_ns.bump(wait);
  cell_->wait.add(wait);
  if (was_ready) {
    cell_->ready_calls.bump(1);
    cell_->ready_wait_ns.bump(wait - worked);
    cell_->starved_ns.bump(worked);
  } else {
    cell_->starved_ns.bump(wait);
    if (charges != nullptr) {
      if (charges->workers_first) cell_->worker_start_ns.bump(wait);
      charge(*charges, wait, worked);
    } else if (waited > 0 && candidate_ != SinkSurroundings::kNobody) {
      cell_->ledger[static_cast<std::size_t>(candidate_) % kLedgerOperators].bump(waited);
    } else {
      cell_->ledger_unknown_ns.bump(waited);
    }
  }
  cell_->remember_longest(wait, loop_ns, cell_->steps.load());
  last_wait_ns_ = wait;
  steady_step_ = true;
  return was_ready;
}

// A batch and the GetNext that brought it have one number: how many this loader had yielded before.
void SinkProbe::remember(std::int64_t now, bool was_ready, const WaitCharges* charges) noexcept {
  const std::uint64_t number = cell_->steps.load() - 1;
  waits_.wait(wait_began_ns_, now, number, was_ready);
  if (charges == nullptr || charges->made_from_ns == 0) return;
  batches_.range(charges->made_from_ns, charges->made_until_ns, number,
                 static_cast<std::uint32_t>(charges->made_by + 1));
}

void SinkProbe::start_step(std::int64_t now) noexcept {
  const std::int64_t last_step = now - delivered_ns_;
  delivered_ns_ = now;
  excluded_ns_ = 0;
  parts_.begin_step();
  computing_ = true;
  if (sampling_.take(now, last_step)) {
    busy_at_delivery_ = surroundings_->busy_workers();
    cpu_at_delivery_ns_ = Clock::thread_cpu_ns();
  } else {
    cpu_at_delivery_ns_ = -1;
  }
  worker_->rest_in(nullptr, WorkerState::computing, now);
}

void SinkProbe::end_loop(std::int64_t now) noexcept {
  if (cell_ == nullptr || !in_loop_) return;
  in_loop_ = false;
  waiting_ = false;
  parts_.leave();
  waits_.end_loop(now);
  // Dropped in the middle of a step: that step never became complete and is not counted.
  computing_ = false;
  {
    const SeqlockWrite write(cell_->lock);
    cell_->waiting.store(0);
  }
  if (cell_->active.load() > 0) cell_->active.bump(static_cast<std::uint32_t>(-1));
  cell_->last_event_ns.store(now);
  if (worker_ != nullptr) worker_->rest_in(nullptr, WorkerState::idle, now);
  if (steady_) surroundings_->loop_ended(now);
  steady_ = false;
}

}  // namespace headrace::metrics
