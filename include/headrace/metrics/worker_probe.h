// Calls of a worker, with one invariant: every nanosecond of its loop time is in exactly one account.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/metrics/clock.h"
#include "headrace/metrics/history_store.h"
#include "headrace/metrics/loop_clock.h"
#include "headrace/metrics/operator_cell.h"
#include "headrace/metrics/worker_cell.h"

namespace headrace::metrics {

/// Records the calls and waits of one thread into its cells in the segment.
///
/// One probe per thread; not thread-safe. Never throws, allocates or blocks. `now` is Clock::now_ns() (tests
/// and simulations pass their own). Calls nest up to 32 deep; deeper ones are counted, their time stays with
/// the caller.
class WorkerProbe {
 public:
  static constexpr std::uint32_t kMaxDepth = 32;
  static constexpr int kMaxCells = 128;

  WorkerProbe() = default;
  /// `operator_cells` is the array in the segment that account numbers index.
  void bind(WorkerCell* cell, OperatorCell* operator_cells, const LoopClock* clock,
            std::int64_t now) noexcept;
  /// From the next change of state on, the states are kept for the timeline too (metrics/history_track.h), in
  /// a track of the worker's own.
  void keep_history(const HistoryStore& store) noexcept {
    store_ = store;
    history_wanted_ = store.bound();
  }
  /// Continues what a writer that is gone left open, so that `finish` can close it. `owned`: its operator
  /// cells.
  void take_over(WorkerCell& cell, OperatorCell* operator_cells, std::span<OperatorCell* const> owned,
                 const LoopClock& clock) noexcept;
  bool bound() const noexcept { return cell_ != nullptr; }
  WorkerCell* cell() const noexcept { return cell_; }

  /// A body begins. `cell` must belong to this worker.
  /// `label`: what the framework calls this item (an index into a dataset), for it and for what it calls;
  /// below 0: the caller's label, else the operator's own running number.
  void enter(OperatorCell& cell, std::int64_t now, std::int64_t label = -1) noexcept;
  /// The innermost body ends. Returns its exclusive time in ns.
  std::int64_t leave(std::int64_t now, bool failed) noexcept;
  /// The innermost body ends and made no item: its time is kept, nothing is counted.
  void abandon(std::int64_t now) noexcept;
  /// Cancels the innermost call and charges its time to the enclosing activity. Use it when remote work is
  /// reported through `attribute`. Only for a body that contains no wait and no other body.
  void withdraw() noexcept;

  /// One item that this thread worked on from `began` until `now`, known only afterwards (a receive that
  /// began as a wait): the time since `began` moves from the state it was in to the operator. `cpu_ns` below
  /// 0: unknown. `label`: as for `enter`.
  void attribute(OperatorCell& cell, std::int64_t began, std::int64_t now, std::int64_t cpu_ns,
                 std::int64_t label = -1, bool failed = false) noexcept;

  /// Adds a copy to a device by an operator of this worker; calls of start-up are not counted.
  void transferred(OperatorCell& cell, const TransferRecord& record, std::int64_t now) noexcept;

  /// The worker waits at a queue, or continues. Nested inside bodies; the body's time stops meanwhile.
  void block(WorkerState state, std::int64_t now) noexcept;
  void unblock(std::int64_t now) noexcept;

  /// Account of the worker outside bodies: its own loop (an implicit operator) or a state.
  void rest_in(OperatorCell* loop_cell, WorkerState state, std::int64_t now) noexcept;
  OperatorCell* loop_cell() const noexcept { return loop_; }
  /// One item of the worker's own loop is done (it put one, or asks for the next one). `first_counts`: the
  /// very first call, too, ends an item (a source's first put); when that began nobody saw, so it has no
  /// service time.
  void loop_item(std::int64_t now, bool counts, bool first_counts = false) noexcept;

  /// The framework's label of the loop's current item; holds for one item.
  void label_loop_item(std::int64_t label) noexcept { loop_label_ = label; }
  /// The loop's current item failed and will not be handed on.
  void loop_item_failed() noexcept {
    if (loop_ != nullptr) loop_->failures.bump(1);
  }

  /// Counts an item that came from or went to a queue. `queue` is its index.
  void edge(std::uint32_t queue, bool is_put, bool counts) noexcept {
    if (!counts) return;
    for (WorkerEdge& edge : cell_->edges) {
      if (edge.queue.load() == 0) {
        edge.is_put.store(is_put ? 1 : 0);
        edge.queue.store(queue + 1);
      }
      if (edge.queue.load() != queue + 1 || (edge.is_put.load() != 0) != is_put) continue;
      edge.items.bump(1);
      return;
    }
  }
  bool gets_from(std::uint32_t queue) const noexcept {
    for (const WorkerEdge& edge : cell_->edges) {
      const std::uint32_t at = edge.queue.load();
      if (at == 0) break;
      if (at == queue + 1 && edge.is_put.load() == 0) return true;
    }
    return false;
  }
  bool puts_somewhere() const noexcept {
    if (announced_puts_) return true;
    for (const WorkerEdge& edge : cell_->edges) {
      if (edge.queue.load() == 0) break;
      if (edge.is_put.load() != 0) return true;
    }
    return false;
  }
  /// The loop that runs now puts what it makes, though it has not done so yet: its gets end no item.
  void announce_puts() noexcept { announced_puts_ = true; }

  /// The thread ends.
  void finish(std::int64_t now) noexcept;

  /// Operator cells of this worker, in the order in which it met them.
  std::span<OperatorCell* const> owned() const noexcept {
    return {owned_.data(), static_cast<std::size_t>(owned_count_)};
  }

  int depth() const noexcept { return static_cast<int>(depth_); }
  /// Time spent blocked at queues so far, by wall clock; differences over a GetNext tell starved from handed
  /// over.
  std::int64_t blocked_wall_ns() const noexcept { return blocked_wall_ns_; }
  /// Time spent in bodies so far, by wall clock; what was attributed afterwards is not in it.
  std::int64_t body_wall_ns() const noexcept { return body_wall_ns_; }

 private:
  struct Frame {
    OperatorCell* cell = nullptr;
    std::int64_t own_ns = 0;
    std::int64_t cpu_start_ns = -1;
    std::int64_t nested_cpu_ns = 0;
    std::int64_t process_cpu_start_ns = -1;
    std::int64_t nested_pool_ns = 0;
    std::int64_t label = -1;
    bool loop_had_body = false;  ///< before it
  };

  Frame& top() noexcept { return frames_[depth_ - 1]; }
  void switch_to(std::uint32_t account, std::int64_t now) noexcept;
  /// Inlined where bodies begin and end (28 of 500 instructions). `reading`: the loop clock's, of `now`.
  [[gnu::always_inline]] inline void move_to(std::uint32_t account, std::int64_t now,
                                             LoopClock::Reading reading) noexcept;
  void charge_frame(std::int64_t now) noexcept;
  void claim_history(std::int64_t now) noexcept;
  /// The thread's CPU time, which also goes into the account of all that it used.
  std::int64_t read_cpu(std::int64_t now) noexcept;
  /// In a loader's worker process, other threads compute for its operators, but for the one that sends batches.
  bool has_own_process() const noexcept { return cell_->loader.load() != 0; }
  std::uint32_t moment_of(std::uint32_t account) const noexcept {
    if (account < kOperatorAccount) return account;
    return WorkerMoment::kFirstOperator + operator_cells_[account - kOperatorAccount].operator_id.load();
  }
  void close_windows(std::int64_t loop_ns) noexcept;
  void restart() noexcept;
  void own(OperatorCell& cell) noexcept;
  std::uint32_t account_of(const OperatorCell& cell) const noexcept {
    return kOperatorAccount + static_cast<std::uint32_t>(&cell - operator_cells_);
  }
  std::uint32_t resting_account() const noexcept;
  Relaxed<std::int64_t>& total_of(std::uint32_t account) noexcept;
  void record_item(OperatorCell& cell, std::int64_t own_ns, std::int64_t cpu_ns, std::int64_t now,
                   bool paused, bool failed, std::int64_t label = -1, std::int64_t pool_ns = 0) noexcept;

  WorkerCell* cell_ = nullptr;
  OperatorCell* operator_cells_ = nullptr;
  const LoopClock* clock_ = nullptr;
  WorkerHistory history_;
  HistoryStore store_;
  bool history_wanted_ = false;
  std::array<Frame, kMaxDepth> frames_{};
  std::uint32_t depth_ = 0;  ///< open bodies, at most kMaxDepth
  int too_deep_ = 0;
  std::int64_t last_ns_ = 0;  ///< Clock of the last switch
  // The last read of the CPU clock while the loop ran; below 0: none.
  std::int64_t cpu_read_ns_ = -1;
  std::int64_t cpu_read_at_ns_ = 0;
  std::int64_t cpu_read_loop_ns_ = 0;
  OperatorCell* loop_ = nullptr;
  WorkerState rest_state_ = WorkerState::idle;
  std::int64_t loop_own_ns_ = 0;  ///< of the loop's current item
  std::int64_t loop_cpu_start_ns_ = -1;
  std::int64_t loop_label_ = -1;
  bool announced_puts_ = false;
  bool loop_had_body_ = false;
  bool loop_open_ = false;
  std::int64_t blocked_wall_ns_ = 0;
  std::int64_t body_wall_ns_ = 0;
  bool blocked_ = false;
  std::array<OperatorCell*, kMaxCells> owned_{};
  int owned_count_ = 0;
};

}  // namespace headrace::metrics
