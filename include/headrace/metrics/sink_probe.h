// Calls of the training loop's iterator around every GetNext.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/metrics/loop_clock.h"
#include "headrace/metrics/range_history.h"
#include "headrace/metrics/service_sequence.h"
#include "headrace/metrics/sink_cell.h"
#include "headrace/metrics/step_listener.h"
#include "headrace/metrics/worker_probe.h"

namespace headrace::metrics {

/// The sink's interface to its run. Called from the sink's thread; must not block or throw.
class SinkSurroundings {
 public:
  static constexpr int kNobody = -1;

  virtual ~SinkSurroundings() = default;
  /// The first batch of an epoch was delivered / the loop ended: the loop clock follows.
  virtual void loop_began(std::int64_t now) noexcept = 0;
  virtual void loop_ended(std::int64_t now) noexcept = 0;
  /// Number of other workers that are busy now.
  virtual int busy_workers() const noexcept = 0;
  /// Operator id whose worker is in service for the sink of `loader` now, or kNobody.
  virtual int in_service(int loader) const noexcept = 0;
};

/// Activity of the awaited batch during one GetNext, if the loader's batches are followed one by one.
struct WaitCharges {
  enum class What : std::uint8_t { in_service, waiting_for_worker, order, handoff };
  struct Charge {
    What what;
    int op;  ///< operator id; -1 for handoff
    std::int64_t ns;
  };
  static constexpr std::size_t kMax = 12;

  bool ready =
      false;  ///< complete at the call: all of the wait is hand-off floor, `charges` count for nothing
  bool workers_first = false;  ///< the first batch of the worker that made it: it had to start
  std::array<Charge, kMax> charges;
  std::size_t count = 0;
  // When the batch was being made, for the timeline; 0: not known.
  std::int64_t made_from_ns = 0;
  std::int64_t made_until_ns = 0;
  int made_by = -1;  ///< number of the worker that made it; -1: not known

  void add(What what, int op, std::int64_t ns) noexcept {
    if (ns > 0 && count < kMax) charges[count++] = {what, op, ns};
  }
};

/// One pass over a wrapped loader (one iterator). Single thread. Never throws, allocates or blocks.
class SinkProbe {
 public:
  SinkProbe() = default;
  /// `source`: the cell of the wrapped object itself where its time inside GetNext is work or unknown; null
  /// where the object only takes from a recorded queue (then readiness of the awaited batch is exact).
  /// `followed`: who is in service is known per batch (WaitCharges) or from the operators inside GetNext, and
  /// need not be asked of the run at every wait.
  /// Whether its loop has had its first batch.
  bool steady() const noexcept { return steady_; }
  /// Batches that the loader has yielded.
  std::uint64_t steps() const noexcept { return cell_ == nullptr ? 0 : cell_->steps.load(); }
  void bind(SinkCell* cell, WorkerProbe* worker, OperatorCell* source, const LoopClock* clock,
            SinkSurroundings* surroundings, bool followed = false, int loader = -1) noexcept;
  bool bound() const noexcept { return cell_ != nullptr; }
  /// Whose marks cut its steps; the process's where nothing is said. Before the loop begins.
  void listen_to(StepMarks& marks) noexcept { marks_ = &marks; }
  /// Keeps GetNext waits and the making of batches for the timeline.
  void keep_history(const RangeHistory& waits, const RangeHistory& batches) noexcept {
    waits_ = waits;
    batches_ = batches;
  }

  void begin_epoch(std::int64_t now) noexcept;
  void begin_wait(std::int64_t now) noexcept;
  /// `ready`: -1 where only the recorded queues know, else 0 or 1 as the adapter saw it.
  void end_wait(std::int64_t now, bool delivered, bool failed, int ready = -1) noexcept;
  /// `end_wait` of a batch that was followed: readiness and ledger come from the charges.
  void end_wait(std::int64_t now, bool delivered, bool failed, const WaitCharges& charges) noexcept;
  /// The loop continues after a GetNext that failed: no new epoch, its next batch is a first one again.
  void resume(std::int64_t now) noexcept;
  /// The loop is over: exhausted, failed, or the iterator was dropped. Calling it twice is harmless.
  void end_loop(std::int64_t now) noexcept;

  /// A GetNext took an item from this recorded queue / ran this recorded operator: it belongs to this loader.
  void took_from(int queue) noexcept {
    took_ = true;
    if (cell_ != nullptr && queue >= 0 && queue < 64) {
      cell_->queues.store(cell_->queues.load() | std::uint64_t{1} << queue);
    }
  }
  void ran(int op) noexcept {
    if (cell_ == nullptr || op < 0 || op >= kLedgerOperators) return;
    auto& word = cell_->operators[static_cast<std::size_t>(op) / 64];
    word.store(word.load() | std::uint64_t{1} << (op % 64));
  }

  /// The thread that iterated is gone: what is left to record is the sink's own.
  void forget_worker() noexcept { worker_ = nullptr; }

  bool in_loop() const noexcept { return in_loop_; }
  std::int64_t loop_started_ns() const noexcept { return epoch_ns_; }
  std::int64_t last_delivery_ns() const noexcept { return delivered_ns_; }
  /// The last `ns` of the current step were a wait of another wrapped loop on the same thread.
  void exclude(std::int64_t ns) noexcept {
    excluded_ns_ += ns;
    parts_.exclude(ns);
  }
  /// Excluded time of the current step.
  std::int64_t excluded_ns() const noexcept { return excluded_ns_; }
  /// A device worked `ns` on a step of this loop, by marks in its queue; the host was in it for `host_ns`.
  void tell_device(std::int64_t ns, std::int64_t host_ns) noexcept;
  /// A whole other loop ran within the current step, on the same thread: `ns` of it are not excluded yet.
  void exclude_loop(std::int64_t ns) noexcept {
    exclude(ns);
    parts_.disturb();
  }

 private:
  void deliver_first(std::int64_t now) noexcept;
  [[gnu::noinline]] void finish_wait(std::int64_t now, bool delivered, bool failed, int ready,
                                     const WaitCharges* charges) noexcept;
  // Parts of a GetNext: calls of them took a twelfth of its instructions.
  [[gnu::always_inline]] inline bool deliver(std::int64_t now, int ready,
                                             const WaitCharges* charges) noexcept;
  [[gnu::always_inline]] inline void remember(std::int64_t now, bool was_ready,
                                              const WaitCharges* charges) noexcept;
  [[gnu::always_inline]] inline void start_step(std::int64_t now) noexcept;
  [[gnu::always_inline]] inline void close_compute(std::int64_t now) noexcept;
  void charge(const WaitCharges& charges, std::int64_t wait, std::int64_t worked) noexcept;
  void add_parts(StepListener::Cuts cuts, std::int64_t compute) noexcept;
  /// Time from the cell's since_ns until now, not in its totals yet.
  struct Span {
    std::int64_t wait_ns;
    std::int64_t starved_ns;
    std::int64_t compute_ns;
  };
  void close_windows(std::int64_t loop_ns, Span open) noexcept;

  SinkCell* cell_ = nullptr;
  WorkerProbe* worker_ = nullptr;
  OperatorCell* source_ = nullptr;
  const LoopClock* clock_ = nullptr;
  SinkSurroundings* surroundings_ = nullptr;
  RangeHistory waits_;
  RangeHistory batches_;
  StepMarks* marks_ = &StepMarks::process();
  StepListener parts_;
  bool followed_ = false;
  int loader_ = -1;
  bool in_loop_ = false;
  bool asked_ = true;  ///< the epoch counts
  bool steady_ = false;
  bool waiting_ = false;
  bool computing_ = false;
  bool steady_step_ = false;        ///< the current step has a wait: it is not the first of its epoch
  bool took_ = false;               ///< this GetNext took from a recorded queue
  std::int64_t source_own_ns_ = 0;  ///< time of the wrapped object itself in this GetNext
  int candidate_ = SinkSurroundings::kNobody;
  std::int64_t epoch_ns_ = 0;
  std::int64_t wait_began_ns_ = 0;
  std::int64_t delivered_ns_ = 0;
  std::int64_t excluded_ns_ = 0;
  std::int64_t blocked_at_begin_ns_ = 0;
  std::int64_t bodies_at_begin_ns_ = 0;
  std::int64_t last_wait_ns_ = 0;
  BurstSampling sampling_{};
  std::int64_t cpu_at_delivery_ns_ = -1;
  int busy_at_delivery_ = 0;
};

}  // namespace headrace::metrics
