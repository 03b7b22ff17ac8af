// A thread between a loader and the training loop: it iterates the loader and puts the batches into a queue.
//
//     loader ── next() ──▶ feeding thread ── put ──▶ queue ── get ──▶ training loop
//
// The training loop waits in the queue's get, so that is its GetNext. The feeding thread is a worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "headrace/profile/probes.h"

namespace headrace::profile {

/// Moves the record of one pass over a loader from the thread that iterates to the thread that takes from the
/// queue. One thread feeds, one thread takes; never throws after it was made.
class Relay {
 public:
  Relay(std::shared_ptr<LoaderHandle> loader, std::shared_ptr<LoopRecorder> recorder);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::shared_ptr<LoaderHandle>& loader() const noexcept { return loader_; }
  /// True on a thread that the program started, where a relay is possible.
  static bool possible_here() noexcept {
    if (thread_ == Thread::unknown) look_at_thread();
    return thread_ == Thread::started;
  }

  // --- called by the thread that feeds ---

  /// From now on GetNext is what the other thread waits for. Called between the first batch and its put.
  void take_over() noexcept;
  bool active() const noexcept { return active_.load(std::memory_order_acquire); }
  /// It asks the loader for a batch, and has one; the wrapped object's own time is that of its operator.
  void begin_feed() noexcept;
  void end_feed(bool delivered, bool failed) noexcept;
  /// The batch was followed: what it was doing while the thread waited for it.
  void followed(const metrics::WaitCharges& charges) noexcept;
  /// The loader has no more batches.
  void exhausted() noexcept { exhausted_.store(true, std::memory_order_release); }

  // --- called by the thread that takes ---

  /// An item left the queue, within the queue's lock.
  void taken() noexcept { taken_.fetch_add(1, std::memory_order_relaxed); }
  /// A get begins; `level`: items in the queue. A get that timed out before this one belongs to the same wait.
  void begin_wait(std::int64_t level) noexcept;
  /// The get returned an item. Not called where it raised: the next get continues the wait.
  void end_wait() noexcept;

 private:
  enum class Thread : std::uint8_t { unknown, main, started };
  // One load, as ThreadContext's pointer.
  [[gnu::tls_model("initial-exec")]] static inline thread_local Thread thread_ = Thread::unknown;
  static void look_at_thread() noexcept;

  metrics::WaitCharges charges_of_next(std::int64_t wait_ns) noexcept;
  void end_loop() noexcept;

  std::shared_ptr<LoaderHandle> loader_;
  std::shared_ptr<LoopRecorder> recorder_;
  std::atomic<bool> active_{false};
  std::atomic<bool> exhausted_{false};
  std::atomic<std::int64_t> fed_{1};  ///< the first batch came before `take_over`
  std::atomic<std::int64_t> taken_{0};
  std::mutex mutex_;
  std::deque<metrics::WaitCharges> charges_;  ///< of batches that the loop has not taken yet
  bool follows_ = false;
  // Of the thread that takes.
  bool waiting_ = false;
  bool ended_ = false;
  bool ready_ = false;
  std::int64_t wait_began_ns_ = 0;
};

}  // namespace headrace::profile
