// The one interface of everything that makes items.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "headrace/pipeline/edge.h"
#include "headrace/pipeline/stop_state.h"
#include "headrace/pipeline/wait_hooks.h"
#include "headrace/profile/operator_profile.h"
#include "headrace/profile/probes.h"

namespace headrace::pipeline {

/// Effect of a body's exception.
enum class OnError {
  stop,  ///< it reaches the sink, and the pass ends
  skip,  ///< the item is left out and counted (`failures` in the profile)
};

/// Makes a worker's hooks; called once per worker thread.
using WaitHooksFactory = std::function<std::unique_ptr<WaitHooks>()>;

inline constexpr int kMaxWorkers = 1024;

/// Settings of all operators.
struct OperatorSettings {
  std::string name;
  profile::Word<profile::OperatorKind> kind;
  int workers = 1;
  bool serial = false;         ///< cannot run more than once
  bool ordered = false;        ///< keeps the order with several workers
  bool fixed_workers = false;  ///< their number stays as it is built
  bool in_processes = false;   ///< the body only waits for a process (RemoteService)
  OnError on_error = OnError::stop;
  std::int64_t capacity = 0;  ///< of the queue behind it; 0: default_capacity()
  QueueChoice queue = QueueChoice::automatic;
  WaitHooksFactory hooks = {};
};

/// One worker of an operator, during one pass.
struct WorkerSlot {
  int index = 0;
  WaitHooks& hooks;
  StopState& stop;
  /// The operator was resized to fewer workers, and this one is surplus: leave before the next item.
  const std::atomic<int>& wanted;
  bool must_leave() const noexcept {
    return stop.stopped() || index >= wanted.load(std::memory_order_relaxed);
  }
};

/// A stage of a pipeline. Between passes it has no queue. `open`, `clear`: no worker runs. `work`: by each
/// worker's thread. The rest: from any thread.
class Operator {
 public:
  Operator(OperatorSettings settings, int stage);
  virtual ~Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  /// A pass begins: makes the queue behind the operator. `pass` counts from 0.
  virtual void open(std::uint64_t pass) = 0;
  /// Makes items until the input ends, the pass stops or slot.must_leave(). True when the input ended.
  virtual bool work(WorkerSlot& slot) = 0;
  /// No more items will come: what is in the queue behind can still be taken.
  virtual void close_output() noexcept = 0;
  /// The pass is over: the queue goes, and what is in it.
  virtual void clear() noexcept = 0;
  /// Applies from now on. UsageError below 1 or above the queue's room.
  virtual void set_capacity(std::int64_t capacity) = 0;

  const OperatorSettings& settings() const noexcept { return settings_; }
  const std::string& name() const noexcept { return settings_.name; }
  int stage() const noexcept { return stage_; }
  std::int64_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  /// Before the first pass: it is an operator of this loader's record (-1: no loader). Later calls change
  /// nothing.
  void record_in(int loader);
  /// After `record_in`.
  const std::shared_ptr<profile::OperatorHandle>& handle() const noexcept { return handle_; }
  /// Whose the time of its threads is between two waits at queues: its own, or where its bodies run in
  /// processes, that of "<name>.handoff".
  const std::shared_ptr<profile::OperatorHandle>& loop_handle() const noexcept {
    return handoff_ != nullptr ? handoff_ : handle_;
  }
  int loader() const noexcept { return loader_; }

 protected:
  void remember_capacity(std::int64_t capacity) noexcept { capacity_.store(capacity); }

 private:
  OperatorSettings settings_;
  int stage_;
  std::atomic<std::int64_t> capacity_;
  int loader_ = -1;
  std::shared_ptr<profile::OperatorHandle> handle_;
  std::shared_ptr<profile::OperatorHandle> handoff_;
};

/// 16 items, and twice the workers where there are more: enough to pass threads by without holding much
/// memory. Behind a batch operator, and what follows it: 2 batches a worker.
std::int64_t default_capacity(int workers, bool of_batches) noexcept;

/// UsageError if the settings are invalid.
void check(const OperatorSettings& settings);

}  // namespace headrace::pipeline
