// Handles for code that records: an operator, a queue, a loop. Thread-safe; the fast path takes no
// lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/metrics/item_ages.h"
#include "headrace/metrics/operator_probe.h"
#include "headrace/metrics/queue_probe.h"
#include "headrace/metrics/sink_probe.h"
#include "headrace/profile/device_samples.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/stages.h"
#include "headrace/profile/thread_context.h"

namespace headrace::profile {

/// An operator by name, in whatever session is current. One object per operator, shared by all its threads.
class OperatorHandle {
 public:
  /// `parameter`: the framework's parameter that widens it, where that is not "<name>.workers". `loader`, `stage`:
  /// the loader whose own graph it belongs to, and its place there.
  OperatorHandle(std::string name, std::string kind, std::uint64_t key, std::uint32_t flags = 0,
                 std::string parameter = "", int loader = -1, std::uint32_t stage = 0);

  /// Begins a call on this thread; returns false if nothing is recorded (then do not call `end`). `label`:
  /// what the framework calls the item, below 0: nothing.
  bool begin(std::int64_t label = -1) noexcept;
  void end(bool failed) noexcept;
  /// The call that began made no item (a generator's end): its time counts, the item does not.
  void abandon() noexcept;

  /// This operator's copies to a device, reported by the thread that ran it, in the call or after it. The
  /// time of a copy that goes on by itself may come with a later one: figures add up.
  void transferred(const metrics::TransferRecord& record) noexcept;

  /// Functions that take its time, from batches that were sampled: "name<tab>share<newline>" each, cut at a
  /// line to what fits. On a thread that records.
  void sampled_functions(std::string_view lines) noexcept;

  /// The record's number in a session, registering it at first use; -1 when the table is full.
  int id_in(Session& session) noexcept;
  /// Sets the loader that the object given to wrap feeds. Its figures are then that loader's alone. Before
  /// the loop begins.
  void feeds(const Session& session, int loader) noexcept;

  const std::string& name() const noexcept { return name_; }
  const std::string& kind() const noexcept { return kind_; }
  std::uint64_t key() const noexcept { return key_; }
  int loader() const noexcept { return loader_; }
  std::uint32_t stage() const noexcept { return stage_; }
  /// Queues that it is declared to take from and put to, if the threads' own calls do not show it.
  void declare(std::vector<std::shared_ptr<class QueueHandle>> inputs,
               std::vector<std::shared_ptr<class QueueHandle>> outputs);

 private:
  int id_in(Session& session, int loader) noexcept {
    const std::uint64_t cached = cached_.load(std::memory_order_relaxed);
    if (cached >> 16 == place_of(session, loader)) return static_cast<int>(cached & 0xFFFFU) - 1;
    return registered_id(session, loader);
  }
  static std::uint64_t place_of(const Session& session, int loader) noexcept {
    return session.uid() << 8 | static_cast<std::uint64_t>(loader + 1);
  }
  int registered_id(Session& session, int loader) noexcept;
  metrics::OperatorCell* cell_in(ThreadContext& context) noexcept;

  std::string name_;
  std::string kind_;
  std::uint64_t key_;
  std::uint32_t flags_;
  std::string parameter_;
  int loader_;
  std::uint32_t stage_;
  std::vector<std::shared_ptr<class QueueHandle>> inputs_;
  std::vector<std::shared_ptr<class QueueHandle>> outputs_;
  std::uint64_t fed_session_ = 0;  ///< uid
  int fed_loader_ = -1;
  const std::uint64_t number_ = next_number_.fetch_add(1, std::memory_order_relaxed);
  static inline std::atomic<std::uint64_t> next_number_{1};
  std::atomic<std::uint64_t> cached_{0};  ///< session uid << 24 | loader + 1 << 16 | id + 1
};

/// The recording side of one bounded queue. The queue calls it with its own lock held, except
/// `waiting`/`waited`.
class QueueHandle {
 public:
  /// `loader`: the pipeline that it belongs to, as a loader's record; -1: it is the user's own.
  /// `is_fifo`: first in, first out, so the age of each item is known.
  QueueHandle(std::string name, std::int64_t capacity, int loader = -1, bool is_fifo = true);
  /// A queue of a framework's loader, between two stages of its model, whatever thread puts and takes: one
  /// at a time.
  QueueHandle(std::string name, std::int64_t capacity, int loader, StageEdge edge);
  ~QueueHandle();

  /// The calling thread is about to block (empty or full), or continues. No lock needed. Does nothing for a
  /// queue between two stages, because its threads are not workers of their own.
  void waiting(metrics::WorkerState state) noexcept;
  void waited() noexcept;

  /// A put or get, under the queue's lock. `level`: items in the queue after it. `counts`: false for an end
  /// mark or an item that its consumer puts back. Never opens a session by itself while recording is
  /// disabled.
  void put(std::int64_t level, std::int64_t waited_ns, bool counts, const char* loop_name) noexcept {
    transferred(true, level, waited_ns, counts, loop_name, -1);
  }
  /// `age_ns`: how long the item lay in the queue; below 0: as its put was seen.
  void get(std::int64_t level, std::int64_t waited_ns, bool counts, const char* loop_name,
           std::int64_t age_ns = -1) noexcept {
    transferred(false, level, waited_ns, counts, loop_name, age_ns);
  }
  /// It is there, and empty, from now on; else from the first call that tells of it. False: nothing is recorded.
  bool begin() noexcept;
  /// Somebody looked: it held `level` items at `at_ns` (Clock), which lasts until the next call. For queues of
  /// which nobody sees the puts and gets; `at_ns` never goes back.
  void sampled(std::int64_t level, std::int64_t at_ns) noexcept;
  /// Its contents are dropped, under the queue's lock: no thread took them, so none becomes a consumer. A
  /// queue dies in whatever thread lets go of it last.
  void emptied() noexcept;
  /// True when the calling thread has taken items from this queue: what it puts here, it puts back.
  bool taken_by_this_thread() const noexcept;

  /// Functions that take the time of a loop's threads; see `OperatorHandle`. `puts`: the loop's first
  /// call of this queue was a put.
  void sampled_functions(const char* loop_name, bool puts, std::string_view lines) noexcept;

  /// True when the next put or get of this thread should bring the name of its loop.
  bool wants_loop_name() const noexcept;

  int id_in(Session& session) noexcept;
  const std::string& name() const noexcept { return name_; }
  std::int64_t capacity() const noexcept { return capacity_; }

 private:
  void follow_session(Session& session) noexcept {
    if (probe_session_ != session.uid() || probe_pid_ != current_pid()) join_session(session);
  }
  void join_session(Session& session) noexcept;
  OperatorHandle loop_of(const char* name, bool puts) const;
  void transferred(bool is_put, std::int64_t level, std::int64_t waited_ns, bool counts,
                   const char* loop_name, std::int64_t age_ns) noexcept;

  std::string name_;
  std::int64_t capacity_;
  int loader_;
  std::optional<StageEdge> edge_;

  // The record in the current session: asked for by any thread (an operator may declare this queue before it
  // is used).
  std::mutex mutex_;
  std::weak_ptr<Session> session_;
  std::uint64_t session_uid_ = 0;
  int pid_ = 0;
  std::atomic<int> id_{-1};

  // State of puts and gets: guarded by the queue's own lock, under which they are called.
  metrics::QueueProbe probe_;
  bool is_fifo_ = false;
  metrics::ItemAges ages_;
  int probe_id_ = -1;
  std::uint64_t probe_session_ = 0;
  int probe_pid_ = 0;
};

/// Cost of passing a batch from a worker process, sampled on one of a loader that has none.
struct HandoffSample {
  long long message_bytes = 0;  ///< of the pickled message, arrays included, tensors not
  long long tensors = 0;
  long long pickle_cpu_ns = -1;  ///< below 0: the batch could not be pickled
};

/// A fact about a loader that verdicts use, under a name; the first one of a name stays. One process at a time.
void note_fact(LoaderRecord& record, std::string_view key, std::string_view value) noexcept;

/// Records the loops over one wrapped loader: one at a time, or several interleaved on one thread.
class LoaderHandle {
 public:
  /// `identity`: of an object that may be given a handle again later, and then goes on in the same record
  /// (0: never).
  LoaderHandle(std::shared_ptr<Session> session, const std::string& name,
               std::shared_ptr<OperatorHandle> source, std::uint64_t identity = 0);
  ~LoaderHandle();

  const std::shared_ptr<Session>& session() const noexcept { return session_; }
  int id() const noexcept { return id_; }
  std::string name() const;
  OperatorHandle* source() const noexcept { return source_.get(); }

  /// State of the segment when an epoch began, newest last; the last few are kept, so that reports can be
  /// cut.
  struct EpochStart {
    std::uint64_t epoch = 0;              ///< 1 for the first
    std::shared_ptr<SegmentImage> image;  ///< null: nothing had been recorded yet
  };
  std::vector<EpochStart> epoch_starts() const;

  /// How the framework's loader is built and set: a LoaderModel as JSON of at most 5,119 bytes, its stages'
  /// operators left out (they say themselves where they stand, stages.h); its worker processes. From then on
  /// it shows operators and queues of its own.
  void describe(const std::string& model, std::uint32_t workers) noexcept;
  /// Its operators so far move `stages` stages on, because others that feed it were found. Its model must
  /// say so too.
  void put_in_front(std::uint32_t stages) noexcept;
  /// Whether another sample of the hand-off is wanted: the loader has no workers, and few were taken.
  bool wants_handoff_sample() const noexcept;
  /// `batch_type`: the class of the batch, "" if it is a plain container.
  void sampled_handoff(const HandoffSample& sample, std::string_view batch_type) noexcept;
  /// See note_fact.
  void note(std::string_view key, std::string_view value) noexcept;
  /// Adds a recording gap (LoaderGap).
  void miss(std::uint32_t gap) noexcept;
  void mark_epoch() noexcept;

  /// A GetNext of this process over the loader, by the thread that is in it (pthread_self). For threads that look
  /// at the loop: no other object needs to be kept alive to ask.
  struct InNext {
    std::uint64_t thread = 0;  ///< 0: none
    bool first = false;        ///< of its loop: workers start in it
  };
  void set_in_next(InNext now) noexcept {
    first_next_.store(now.first, std::memory_order_relaxed);
    thread_in_next_.store(now.thread, std::memory_order_relaxed);
  }
  InNext in_next() const noexcept {
    return {thread_in_next_.load(std::memory_order_relaxed), first_next_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> thread_in_next_{0};
  std::atomic<bool> first_next_{false};
  std::shared_ptr<Session> session_;
  std::shared_ptr<OperatorHandle> source_;
  int id_ = -1;
  int pid_;
  mutable std::mutex mutex_;
  std::deque<EpochStart> epochs_;
};

/// The loop that runs on the calling thread copies its batches to `device`: a fact that advice about
/// the copy rests on. Nothing if no loop of a framework's loader runs.
void note_device(std::string_view device) noexcept;

/// One pass over a wrapped loader. Used by one thread at a time; never throws.
class LoopRecorder {
 public:
  /// `followed`: every `end_wait` brings its charges, so the operator in service is not looked up.
  explicit LoopRecorder(std::shared_ptr<LoaderHandle> loader, bool followed = false);
  ~LoopRecorder();
  LoopRecorder(const LoopRecorder&) = delete;
  LoopRecorder& operator=(const LoopRecorder&) = delete;

  void begin_wait() noexcept;
  /// `ready`: 1 or 0 if the adapter knows whether the awaited batch was ready at the call, else -1.
  void end_wait(bool delivered, bool failed, int ready = -1) noexcept;
  /// `end_wait` of a followed batch: readiness and ledger come from the charges.
  void end_wait(bool delivered, bool failed, const metrics::WaitCharges& charges) noexcept;
  void end_loop() noexcept;

  /// A batch was delivered whose size is worth a look: the 1st, 2nd, 4th, 8th ... one.
  bool asks_for_size() noexcept;
  /// How many bytes it holds, 0 if that cannot be told.
  void tell_size(std::uint64_t bytes) noexcept;
  /// A batch was delivered that is one of those looked into: each of the loader's first 64, then 32 of every
  /// time twice as many. Ranks that take as many batches look into the same ones.
  bool asks_for_contents() noexcept { return running_->probe.steps() >= contents_at_ && is_looked_into(); }
  /// Time of the current step that was spent on recording it.
  void exclude(std::int64_t ns) noexcept { running_->probe.exclude(ns); }

 private:
  bool is_looked_into() noexcept;
  void finish_wait(bool delivered, bool failed, int ready, const metrics::WaitCharges* charges) noexcept;
  void resume() noexcept;
  ThreadContext* follow_thread() noexcept {
    if (pid_ != current_pid()) return nullptr;  // forked: the parent continues to write this loop's cell
    ThreadContext* context = ThreadContext::recording();
    if (context == nullptr) return nullptr;
    const bool is_known = context_uid_ == context->uid() && context_session_ == context->session()->uid();
    return is_known ? context : follow_to(*context);
  }
  ThreadContext* follow_to(ThreadContext& context) noexcept;
  bool on_its_thread() const noexcept;
  void leave_thread() noexcept;
  void tell_others_waited(std::int64_t wait_ns) noexcept;

  std::shared_ptr<LoaderHandle> loader_;
  std::shared_ptr<RunningLoop> running_;
  ThreadContext* context_ = nullptr;
  std::uint64_t context_uid_ = 0;
  std::uint64_t context_session_ = 0;
  DeviceSamples device_;
  int pid_ = 0;
  bool followed_ = false;
  bool started_ = false;
  bool ended_ = false;
  std::uint64_t delivered_ = 0;
  std::uint64_t contents_at_ = 0;  ///< batches of the loader before which none is looked into
  bool failed_ = false;            ///< ended by an exception, after which some iterators can go on
  std::int64_t wait_began_ns_ = 0;
  std::int64_t waits_told_ns_ = 0;  ///< waits of this loop that enclosing loops left out of their steps
};

}  // namespace headrace::profile
