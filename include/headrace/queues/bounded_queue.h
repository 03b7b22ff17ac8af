// The queue on the edge between two operators: any kind, with waiting, an end, and instrumentation.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "headrace/metrics/clock.h"
#include "headrace/queues/eventcount.h"
#include "headrace/queues/futex_word.h"
#include "headrace/queues/instrumented.h"
#include "headrace/queues/queue_kind.h"

namespace headrace::queues {

/// Moves items between threads; the kind defines which threads may use which side (MpmcRing: any).
///
///     BoundedQueue<MpmcRing<Image>, AdaptiveRecorder> decoded(16, AdaptiveRecorder("decoded", 16));
///     decoded.put(decode(path));                       // waits for room; closed: the item stays yours
///     while (auto image = decoded.get()) use(*image);  // waits for items; nothing: closed and empty
///
/// A call that cannot continue spins about a microsecond (if there is a second core) and then sleeps; an
/// idle queue costs no CPU time. Items belong to their producer until `put` returns done, then to the
/// queue, then to the thread that got them; items inside are destroyed with the queue. No
/// thread may be in a call then: close the queue and join its threads first.
template <QueueKind Kind, class Recorder = NotRecorded>
class BoundedQueue {
 public:
  using T = typename Kind::value_type;

  /// `max_capacity`: how far `set_capacity` may go; 0: kRoomToGrow, or `capacity` where that is more.
  /// UsageError if a capacity is below 1 or above kMaxItems.
  explicit BoundedQueue(std::int64_t capacity, Recorder recorder = Recorder(), std::int64_t max_capacity = 0)
      : kind_(capacity, max_capacity), recorder_(std::move(recorder)) {
    recorder_.attach(kind_);
  }
  ~BoundedQueue() { recorder_.detach(); }
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  /// Waits for room until `deadline`: done, timed_out or closed. Moves from `item` only when it is done.
  /// `loop_name`: the calling loop, for threads that run no annotated operator; must outlive the call.
  QueueStatus put(T&& item, Deadline deadline = kNever, const char* loop_name = nullptr) {
    const Attempt attempt = kind_.try_push(item);
    if (attempt.status == QueueStatus::done) {
      told_done(Side::put, attempt, loop_name);
      return QueueStatus::done;
    }
    if (attempt.status == QueueStatus::closed) return QueueStatus::closed;
    return wait(Side::put, deadline, loop_name, [&] { return kind_.try_push(item); });
  }
  /// Without waiting: done, not_now or closed.
  QueueStatus try_put(T&& item, const char* loop_name = nullptr) {
    const Attempt attempt = kind_.try_push(item);
    if (attempt.status == QueueStatus::done) told_done(Side::put, attempt, loop_name);
    return attempt.status;
  }

  /// Waits for an item until `deadline`: done, timed_out, or closed (and nothing is left inside).
  QueueStatus get(std::optional<T>& out, Deadline deadline = kNever, const char* loop_name = nullptr) {
    const Attempt attempt = kind_.try_pop(out);
    if (attempt.status == QueueStatus::done) {
      told_done(Side::get, attempt, loop_name);
      return QueueStatus::done;
    }
    if (attempt.status == QueueStatus::closed) return QueueStatus::closed;
    return wait(Side::get, deadline, loop_name, [&] { return kind_.try_pop(out); });
  }
  /// The same; nothing if it timed out or the queue is closed and empty.
  std::optional<T> get(Deadline deadline = kNever, const char* loop_name = nullptr) {
    std::optional<T> out;
    get(out, deadline, loop_name);
    return out;
  }
  /// Without waiting: done, not_now or closed.
  QueueStatus try_get(std::optional<T>& out, const char* loop_name = nullptr) {
    const Attempt attempt = kind_.try_pop(out);
    if (attempt.status == QueueStatus::done) told_done(Side::get, attempt, loop_name);
    return attempt.status;
  }

  /// No more puts: those that wait, and all later ones, return `closed`. What is inside can still be taken;
  /// then gets return `closed`. From any thread, any number of times.
  void close() noexcept {
    kind_.close();
    not_empty_.notify_all();
    not_full_.notify_all();
  }
  /// Closes, and takes out the remaining items (a cancelled pipeline).
  /// For a kind with one consumer: only by that one, or once it is gone.
  std::vector<T> drain() {
    close();
    std::vector<T> left;
    std::optional<T> out;
    for (;;) {
      const QueueStatus status = kind_.try_pop(out).status;
      if (status == QueueStatus::closed) break;
      if (status == QueueStatus::done) {
        left.push_back(std::move(*out));
      } else {
        std::this_thread::yield();  // a put is on its way
      }
    }
    recorder_.emptied();
    return left;
  }

  /// Applies from the next put on; items inside stay, even if there are more. UsageError outside
  /// 1..max_capacity().
  void set_capacity(std::int64_t capacity) {
    kind_.set_capacity(capacity);
    not_full_.notify_all();
  }
  std::int64_t capacity() const noexcept { return kind_.capacity(); }
  std::int64_t max_capacity() const noexcept { return kind_.max_capacity(); }
  /// Items inside now, give or take the calls in flight.
  std::int64_t size() const noexcept { return level_of(kind_); }
  bool closed() const noexcept { return kind_.closed(); }

 private:
  /// Attempts before sleeping: most waits of a busy pipeline end within a microsecond.
  static constexpr int kSpins = 64;
  /// A sleep that ends sooner than this cost more than it spared: the next waits on that side give the core
  /// away for as long before they sleep. Threads that pass items in less time than a wake-up takes would
  /// otherwise wake each other for every one of them. After a longer sleep, and where others take the core
  /// for longer, they go to sleep at once again.
  static constexpr std::int64_t kShortNs = 30'000;

  static void pause() noexcept {
#if defined(__x86_64__)
    _mm_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }
  /// On a single core, spinning keeps the other side from running.
  static int spins() noexcept {
    static const int count = std::thread::hardware_concurrency() > 1 ? kSpins : 0;
    return count;
  }

  void tell_other_side(Side side) noexcept {
    if (side == Side::put) {
      not_empty_.notify_one();
    } else if constexpr (Kind::kAnyPutMayGo) {
      not_full_.notify_one();
    } else {
      not_full_.notify_all();
    }
  }
  void told_done(Side side, const Attempt& attempt, const char* loop_name) noexcept {
    tell_other_side(side);
    recorder_.moved(side, attempt.number, loop_name);
  }
  template <class Try>
  QueueStatus wait(Side side, Deadline deadline, const char* loop_name, Try&& attempt_again) {
    const std::int64_t began = recorder_.wait_began();
    for (int i = spins(); i > 0; --i) {
      pause();
      const Attempt attempt = attempt_again();
      if (attempt.status != QueueStatus::not_now) return ended(side, attempt, began, loop_name);
    }
    std::atomic<bool>& yields = yields_[side == Side::put ? 0 : 1];
    if (yields.load(std::memory_order_relaxed) && !metrics::Clock::is_virtual()) {
      const std::int64_t until = metrics::Clock::now_ns() + kShortNs;
      do {
        std::this_thread::yield();
        const Attempt attempt = attempt_again();
        if (attempt.status != QueueStatus::not_now) return ended(side, attempt, began, loop_name);
      } while (metrics::Clock::now_ns() < until);
    }
    const std::int64_t sleeps = metrics::Clock::now_ns();
    const QueueStatus status = sleep(side, deadline, began == 0 ? sleeps : began, loop_name, attempt_again);
    yields.store(metrics::Clock::now_ns() - sleeps < kShortNs, std::memory_order_relaxed);
    return status;
  }

  template <class Try>
  QueueStatus sleep(Side side, Deadline deadline, std::int64_t began, const char* loop_name,
                    Try& attempt_again) {
    struct Waiting {  // also where the attempt throws
      Recorder& recorder;
      Waiting(Recorder& of, Side side) : recorder(of) { recorder.waiting(side); }
      ~Waiting() { recorder.waited(); }
    };
    Attempt attempt;
    {
      const Waiting waiting(recorder_, side);
      attempt = sleep_until_moved(side == Side::put ? not_full_ : not_empty_, deadline, attempt_again);
    }
    // A slot may become ready before the one ahead of it. Its notification then woke somebody for nothing,
    // who slept on; so whoever comes from a sleep and leaves more behind passes the wake-up on.
    if (attempt.status == QueueStatus::done) {
      const std::int64_t level = level_of(kind_);
      if (side == Side::get && level > 0) not_empty_.notify_one();
      if (side == Side::put && level < kind_.capacity()) not_full_.notify_one();
    }
    return ended(side, attempt, began, loop_name);
  }

  template <class Try>
  Attempt sleep_until_moved(EventCount& event, Deadline deadline, Try& attempt_again) {
    for (;;) {
      const EventCount::Ticket ticket = event.prepare();
      Attempt attempt;
      try {
        attempt = attempt_again();
      } catch (...) {
        event.cancel(ticket);
        throw;
      }
      Wake wake = Wake::notified;
      if (attempt.status == QueueStatus::not_now && !kind_.closed()) {
        wake = event.wait(ticket, deadline);
        if (wake != Wake::timed_out) continue;
        attempt = attempt_again();  // the notification may have come at the same moment
      } else {
        event.cancel(ticket);
      }
      if (attempt.status != QueueStatus::not_now) return attempt;
      if (wake == Wake::timed_out || EventCount::Clock::now() >= deadline) return {QueueStatus::timed_out};
      // Closed, and the last put is on its way: its notification may be for another get, and no further one
      // will come.
      std::this_thread::yield();
    }
  }

  QueueStatus ended(Side side, const Attempt& attempt, std::int64_t began, const char* loop_name) noexcept {
    if (attempt.status != QueueStatus::done) return attempt.status;
    tell_other_side(side);
    if (began == 0) {
      recorder_.moved(side, attempt.number, loop_name);
    } else {
      recorder_.moved_after(side, metrics::Clock::now_ns() - began, loop_name);
    }
    return QueueStatus::done;
  }

  Kind kind_;
  // Every put looks at the first and every get at the second: a line each.
  alignas(64) EventCount not_empty_;
  alignas(64) EventCount not_full_;
  alignas(64) std::atomic<bool> yields_[2] = {};  ///< waiting puts, waiting gets
  alignas(64) Recorder recorder_;
};

}  // namespace headrace::queues
