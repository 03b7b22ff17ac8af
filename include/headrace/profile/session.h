// One run recorded by one process tree: the segment, its registrations, and the queries of the sinks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/metrics/queue_probe.h"
#include "headrace/metrics/sink_probe.h"
#include "headrace/profile/registry.h"
#include "headrace/profile/segment.h"

namespace headrace::profile {

struct SessionOptions {
  /// Run folder; empty: decided later (bind_run), the segment is in shared memory until then.
  std::string run;
  int rank = 0;
  /// The default folder: it is removed at the end, if the program itself reported on all of its loops.
  bool unnamed = false;
};

/// Opened by the process that trains; its workers attach. All methods are thread-safe and, after opening,
/// never throw. The session lives as long as anything records into it, closed or not.
class Session final : public metrics::SinkSurroundings, public std::enable_shared_from_this<Session> {
 public:
  /// Never fails: where no file can be had recording goes to the process's own memory (see `problem`).
  static std::shared_ptr<Session> open(const SessionOptions& options);
  /// Joins the run whose live segment is at `path`. Throws SegmentError.
  static std::shared_ptr<Session> attach(const std::string& path);
  ~Session() override;

  /// Gives a session that was opened without a folder its folder.
  void bind_run(const std::string& run, bool unnamed = false);
  /// Last anchor, last copy, the live file goes. What is still recorded afterwards is lost with the process.
  void close() noexcept;
  /// Writes a copy to the run folder now.
  void copy_out() noexcept;
  /// A report on all that this loader has recorded was taken in the program.
  void note_report(int loader) noexcept;

  std::uint64_t uid() const noexcept { return uid_; }
  bool owner() const noexcept;  ///< false in attached and forked processes
  bool has_run() const noexcept;
  bool has_loaders() const noexcept { return loaders_ > 0; }
  std::string run() const;
  int rank() const noexcept { return rank_; }
  /// Path of the live segment, for processes that attach; empty if there is no file.
  const std::string& live_path() const noexcept { return segment_->path(); }
  /// Messages about files that failed and an unnamed run's place: each once, for the caller to print.
  std::vector<std::string> take_messages() noexcept;
  /// One more line for `take_messages`.
  void tell(const std::string& line) noexcept;

  Segment& segment() noexcept { return *segment_; }
  const metrics::LoopClock* clock() noexcept { return &segment_->header().loop_clock; }

  int operator_id(const OperatorSpec& spec);
  int queue_id(const QueueSpec& spec);
  int queue_id(std::string_view name, std::int64_t capacity) {
    return queue_id({.name = name, .capacity = capacity});
  }
  void close_queue(int queue) noexcept;
  int loader_id(std::string_view name, int source_operator, std::uint64_t identity = 0);
  void close_loader(int loader) noexcept;
  int annotation_id(std::string_view name);
  metrics::QueueProbe queue_probe(int queue) noexcept;
  metrics::SinkCell* sink(int loader) noexcept;
  /// Gives the probe of a loader's sink the tracks that keep its waits and batches.
  void keep_sink_history(metrics::SinkProbe& probe, int loader) noexcept;
  /// The record of a loader; null below 0.
  LoaderRecord* loader_record(int loader) noexcept;
  metrics::WorkerCell* claim_worker(std::int64_t now);
  metrics::OperatorCell* claim_cell(const metrics::WorkerCell& worker, int operator_id, metrics::Place place,
                                    bool is_loop);
  /// The requests of an operator to remote services (Registry::remote_cell), and what they share. Null: no room. No
  /// lock: any thread, at any time.
  metrics::RemoteCell* remote_cell(std::uint32_t owner) noexcept { return registry_.remote_cell(owner); }
  metrics::RemoteTraffic* remote_traffic() noexcept { return registry_.remote_traffic(); }
  bool loop_running() const noexcept { return active_loops_.load(std::memory_order_relaxed) > 0; }

  // SinkSurroundings
  void loop_began(std::int64_t now) noexcept override;
  void loop_ended(std::int64_t now) noexcept override;
  int busy_workers() const noexcept override;
  int in_service(int loader) const noexcept override;

  /// Its segment is in the run folder; what is recorded from now on is lost.
  bool closed() const noexcept {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }

  /// Busy workers that are threads of this process: only they can contend for its interpreter lock.
  int busy_threads_here() const noexcept;

  /// Called by the sampler about once a second: liveness of the other processes' workers, an anchor.
  void keep_alive() noexcept;

  /// Around a fork: no other thread is in the middle of a change of the tables, whose lock the child would
  /// inherit locked for ever.
  void before_fork() noexcept { mutex_.lock(); }
  void after_fork_in_parent() noexcept { mutex_.unlock(); }
  /// The child neither closes, copies nor samples what the parent owns.
  void after_fork_in_child() noexcept {
    owner_pid_ = 0;
    mutex_.unlock();
  }

 private:
  template <class Counts>
  int count_busy(Counts&& counts) const noexcept;
  int in_service_by_stages(int loader) const noexcept;

  explicit Session(std::unique_ptr<Segment> segment);

  std::unique_ptr<Segment> segment_;
  Registry registry_;
  /// `mutex_` is held, or the session is not shared yet.
  void say_where_it_records(const std::string& problem);
  void say(const std::string& line) noexcept;
  bool all_reported() const noexcept;
  /// Returns "" or why it could not be written.
  std::string write_copy(const std::string& path) noexcept;

  mutable std::mutex mutex_;
  /// Held while a copy is written, by the owner only: a slow disk must not keep recording threads (mutex_)
  /// waiting.
  std::mutex copy_mutex_;
  std::string run_;
  std::string copy_path_;
  bool unnamed_ = false;
  std::array<std::uint64_t, kMaxLoaders> reported_steps_{};
  std::vector<std::string> messages_;
  int rank_ = 0;
  std::atomic<int> owner_pid_{0};
  bool closed_ = false;
  std::uint64_t uid_;
  std::atomic<int> active_loops_{0};
  std::atomic<int> loaders_{0};
};

/// The default folder of a run: $HEADRACE_DIR, else `headrace-runs/<name>`, named by what all ranks
/// of a job share (TORCHELASTIC_RUN_ID, SLURM_JOB_ID, MASTER_ADDR:MASTER_PORT), else date, time and pid.
std::string default_run_folder();
/// The default folder has nothing but date, time and pid for a name.
bool default_run_is_unnamed();

}  // namespace headrace::profile
