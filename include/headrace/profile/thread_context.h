// State of one thread with which it records without lookups.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/metrics/sink_probe.h"
#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/current.h"
#include "headrace/profile/layout.h"
#include "headrace/profile/process_identity.h"

namespace headrace::profile {

/// The part of a running loop that other loops of its thread may ask for.
struct RunningLoop {
  metrics::SinkProbe probe;
  int loader = -1;     ///< its record
  bool waits = false;  ///< in a GetNext; read and written by its thread
  std::atomic<bool> gone{
      false};  ///< ended, possibly by another thread; its thread drops it when it looks next
};

/// The thread's worker cell in the current session, its operator cells, and the wrapped loops it runs. One
/// per thread, thread-local, no locks. Rebinds by itself when the current session changes or the process
/// forks; at the thread's end its worker is marked finished.
class ThreadContext {
 public:
  /// The calling thread's context, bound to the current session; null if nothing is recorded.
  static ThreadContext* recording() noexcept {
    ThreadContext& context = local();
    if (context.generation_ != CurrentSession::generation()) context.rebind();
    return context.probe.bound() ? &context : nullptr;
  }
  static ThreadContext& local() noexcept {
    if (local_ == nullptr) local_ = &make_local();
    return *local_;
  }
  ~ThreadContext();

  /// The probe as it is bound now, without following a changed session: what was begun ends where it began.
  /// Null if nothing is recorded and in a forked child, whose cells are still the parent's.
  metrics::WorkerProbe* open_probe() noexcept {
    return probe.bound() && pid_ == current_pid() ? &probe : nullptr;
  }

  Session* session() const noexcept { return session_.get(); }
  std::uint64_t uid() const noexcept { return uid_; }
  /// The calling thread's cell of an operator, made at first use; null when the segment is full.
  metrics::OperatorCell* cell(int operator_id, bool is_loop = false) noexcept;
  metrics::Place place() noexcept {
    const bool in_loop = !running_loops().empty();  // may leave a GetNext
    if (get_next_depth > 0) return metrics::Place::get_next;
    return in_loop ? metrics::Place::step : metrics::Place::worker;
  }
  /// The cell that `remember` was told of under this key, if the thread is where it was then; else null.
  metrics::OperatorCell* remembered(std::uint64_t key) const noexcept {
    const RecentCell& recent = recent_[key % recent_.size()];
    const RunningLoop* loop = loops_.empty() ? nullptr : loops_.back().get();
    const bool is_there = recent.key == key && recent.loop == loop &&
                          recent.in_next == (get_next_depth > 0) &&
                          (loop == nullptr || (loops_.size() == 1 && !loop->gone.load()));
    return is_there ? recent.cell : nullptr;
  }
  void remember(std::uint64_t key, metrics::OperatorCell* cell) noexcept {
    recent_[key % recent_.size()] = {key, cell, loops_.empty() ? nullptr : loops_.back().get(),
                                     get_next_depth > 0};
  }
  /// Before a loop begins on this thread: it may lie where an earlier one did.
  void forget_cells() noexcept { recent_ = {}; }
  /// Wrapped loops that are active on this thread, outermost first.
  std::vector<std::shared_ptr<RunningLoop>>& running_loops() noexcept {
    for (const auto& loop : loops_) {
      if (loop->gone.load()) {
        drop_gone();
        break;
      }
    }
    return loops_;
  }

  metrics::WorkerProbe probe;
  int get_next_depth = 0;

 private:
  ThreadContext();
  static ThreadContext& make_local() noexcept;
  /// Loops that another thread ended, possibly in the midst of a GetNext that this thread had begun.
  void drop_gone() noexcept;
  void rebind() noexcept;
  void release() noexcept;

  // A pointer in the thread's static block: one load, where a whole object in a loaded library costs a call.
  [[gnu::tls_model("initial-exec")]] static inline thread_local ThreadContext* local_ = nullptr;

  std::uint64_t generation_ = 0;
  std::uint64_t uid_;
  int pid_ = 0;
  std::shared_ptr<Session> session_;
  std::vector<std::shared_ptr<RunningLoop>> loops_;
  /// Cached cell of an operator at one place: `refused` too, because asking takes a lock and a long
  /// search.
  struct KnownCell {
    metrics::OperatorCell* cell = nullptr;
    bool refused = false;
  };
  std::array<KnownCell, std::size_t{kMaxOperators} * 3> cells_{};
  struct RecentCell {
    std::uint64_t key = 0;  ///< of the operator's handle; 0: none
    metrics::OperatorCell* cell = nullptr;
    const RunningLoop* loop = nullptr;  ///< the innermost
    bool in_next = false;
  };
  std::array<RecentCell, 4> recent_{};
};

}  // namespace headrace::profile
