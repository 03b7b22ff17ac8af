// One iterator of a framework's loader: the loop over it, and where its batches are.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/profile/batch_tracker.h"
#include "headrace/profile/probes.h"

namespace headrace::profile {

/// Made when the loop asks for the iterator, so that starting the workers belongs to the first batch. Used by
/// one thread at a time, as the iterator itself; never throws after it was made.
class IteratorWatch {
 public:
  /// `begins`: the loop over it begins now; false: with its first GetNext (an iterator that was there
  /// before).
  explicit IteratorWatch(std::shared_ptr<LoaderHandle> loader, bool begins = true);
  ~IteratorWatch();
  IteratorWatch(const IteratorWatch&) = delete;
  IteratorWatch& operator=(const IteratorWatch&) = delete;

  /// It has worker processes: their batches are followed from now on.
  void follow(const BatchTracker::Shape& shape);
  /// The number of a batch was given to a worker while the iterator was being made, at an unknown time.
  void dispatched_at_start(int worker, std::int64_t batch) noexcept;
  /// This iterator begins another epoch.
  void restart() noexcept;

  /// The loop over it ends, and with its next GetNext another one begins: its owner keeps it for all epochs.
  void end_loop() noexcept;

  /// Its batches are parts of those that an iterator around it hands out, whose GetNext calls `outer` records.
  void nest_in(std::shared_ptr<LoopRecorder> outer) noexcept;
  /// The GetNext around it is over; what its batches were doing meanwhile is what that waited for.
  void end_outer_wait(bool delivered, bool failed) noexcept;

  void begin_wait() noexcept;
  /// `batch`: the number of what was delivered, below 0: unknown.
  void end_wait(bool delivered, bool failed, std::int64_t batch) noexcept;
  void end() noexcept;
  /// See LoopRecorder.
  bool asks_for_size() noexcept { return recorder_ != nullptr && recorder_->asks_for_size(); }
  void tell_size(std::uint64_t bytes) noexcept { recorder_->tell_size(bytes); }
  bool asks_for_contents() noexcept { return recorder_ != nullptr && recorder_->asks_for_contents(); }

  /// Time of the current step that was spent on recording it.
  void exclude(std::int64_t ns) noexcept {
    if (recorder_ != nullptr) recorder_->exclude(ns);
  }
  /// The worker that made the batch delivered last; -1: not known.
  int made_by() const noexcept { return made_by_; }

  /// The loader has no workers, and what passing a batch from one would cost is not sampled often enough yet.
  /// Asked of batches that `asks_for_size` picked; the first one is not typical.
  bool asks_for_handoff() noexcept;
  /// `batch_type`: the class of the batch, "" if it is a plain container. `spent_ns`: what the sample
  /// took, which is not the step's time.
  void tell_handoff(const HandoffSample& sample, const char* batch_type, std::int64_t spent_ns) noexcept;

  /// Null while its batches are not followed.
  const std::shared_ptr<BatchTracker>& tracker() const noexcept { return tracker_; }
  const std::shared_ptr<LoaderHandle>& loader() const noexcept { return loader_; }

 private:
  void begin() noexcept;
  void add_part(const metrics::WaitCharges& charges) noexcept;

  std::shared_ptr<LoaderHandle> loader_;
  std::shared_ptr<LoopRecorder> recorder_;  ///< null before the loop begins
  std::shared_ptr<LoopRecorder> outer_;
  metrics::WaitCharges outer_charges_;  ///< of the batches since its last GetNext
  int parts_ = 0;                       ///< so many
  std::shared_ptr<BatchTracker> tracker_;
  std::int64_t made_ns_;  ///< Clock
  std::int64_t asked_ns_ = 0;
  int made_by_ = -1;
  bool saw_first_ = false;
};

}  // namespace headrace::profile
