// A pipeline without its types: operators, their threads, passes, the sink's record.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/pipeline/operator.h"
#include "headrace/pipeline/worker_group.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/profile.h"

namespace headrace::pipeline {

/// The run and name under which a pipeline is recorded.
struct RecordingOptions {
  std::string name = "pipeline";
  std::string run = {};  ///< run folder; empty: the current session, or one that is opened at first use
  int rank = -1;         ///< below 0: as the environment says
};

/// Untyped base of Pipeline<T>. `begin_pass`, `end_pass`: by the sink. `stop`, `set_workers`, `set_capacity`,
/// `profile`: from any thread.
class Runtime {
 public:
  Runtime() = default;
  /// Stops and waits for every thread.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// While it is being built. UsageError if the settings cannot mean anything; a name that is taken gets
  /// "#2".
  OperatorSettings admit(OperatorSettings settings);
  void add(std::unique_ptr<Operator> op);
  Operator& last() noexcept { return *operators_.back(); }
  int stages() const noexcept { return static_cast<int>(operators_.size()); }

  void record_as(RecordingOptions options);
  /// Into this record, before the first pass.
  void record_in(std::shared_ptr<profile::LoaderHandle> loader);

  /// True in a forked child for what its parent has run: its threads are not here. Then every call below does
  /// nothing or throws UsageError.
  bool is_of_another_process() const noexcept;

  /// Ends the pass that may still run, and starts all operators anew.
  void begin_pass();
  /// Stops the pass, waits until no worker is in it, empties the queues. Harmless if none runs.
  void end_pass() noexcept;
  bool in_pass() const noexcept { return stop_ != nullptr; }
  /// The pass ends soon, and the sink gets nothing more from it.
  void stop() noexcept;
  /// The error that ended the pass; null if there is none.
  std::exception_ptr error() const noexcept;
  /// By the sink, whose thread alone begins and ends passes: no lock.
  bool stopped() const noexcept;

  /// Around each wait of the sink. `trace`: the awaited item's; null if it has none, then its wait
  /// is shared out as that of the last one that was. `at_once`: it lay ready at the call.
  void wait_began() noexcept;
  void wait_delivered(const ItemTrace* trace, bool at_once) noexcept;
  void wait_failed(bool with_error) noexcept;
  /// The rest of the pass is not part of the recorded loop. By the sink, between two waits.
  void end_recording() noexcept { recorder_.reset(); }

  /// Operators by the names in the report. UsageError for a name that is not there.
  void set_workers(const std::string& op, int workers);
  void set_capacity(const std::string& op, std::int64_t capacity);
  int workers(const std::string& op) const;
  std::int64_t capacity(const std::string& op) const;
  std::vector<std::string> names() const;

  /// The record, opened at first use; null if nothing is recorded.
  const std::shared_ptr<profile::LoaderHandle>& loader();
  std::uint64_t passes() const noexcept { return passes_; }

 private:
  WorkerGroup& group_of(const std::string& op) const;
  void check_process() const;
  void open_record() noexcept;

  std::vector<std::unique_ptr<Operator>> operators_;
  std::vector<std::unique_ptr<WorkerGroup>> groups_;
  mutable std::mutex mutex_;  // stop_, where another thread calls, and where it changes
  std::shared_ptr<StopState> stop_;
  RecordingOptions recording_;
  std::shared_ptr<profile::LoaderHandle> loader_;
  std::unique_ptr<profile::LoopRecorder> recorder_;
  std::int64_t asked_ns_ = 0;
  metrics::WaitCharges last_charges_;
  std::uint64_t passes_ = 0;
  std::atomic<int> pid_{0};  ///< of the process that began the first pass; `stop` reads it on any thread
};

}  // namespace headrace::pipeline
