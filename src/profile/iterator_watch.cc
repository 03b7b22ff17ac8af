#include "headrace/profile/iterator_watch.h"

#include <utility>

namespace headrace::profile {

using metrics::Clock;

IteratorWatch::IteratorWatch(std::shared_ptr<LoaderHandle> loader, bool begins)
    : loader_(std::move(loader)), made_ns_(Clock::now_ns()) {
  if (begins) begin();
}

IteratorWatch::~IteratorWatch() { end(); }

void IteratorWatch::follow(const BatchTracker::Shape& shape) {
  tracker_ = std::make_shared<BatchTracker>(loader_, shape);
}

void IteratorWatch::dispatched_at_start(int worker, std::int64_t batch) noexcept {
  if (tracker_ != nullptr) tracker_->dispatched_at_start(worker, batch, made_ns_);
}

void IteratorWatch::begin() noexcept try {
  recorder_ = std::make_unique<LoopRecorder>(loader_);
} catch (...) {
  // No memory for a recorder: this epoch is not recorded, the loop continues.
  recorder_.reset();
}

void IteratorWatch::restart() noexcept {
  if (recorder_ != nullptr) recorder_->end_loop();
  if (tracker_ != nullptr) tracker_->restart(Clock::now_ns());
  begin();
}

void IteratorWatch::begin_wait() noexcept {
  if (recorder_ == nullptr) begin();
  if (tracker_ != nullptr) asked_ns_ = Clock::now_ns();
  if (recorder_ != nullptr) recorder_->begin_wait();
}

void IteratorWatch::end_wait(bool delivered, bool failed, std::int64_t batch) noexcept {
  if (recorder_ == nullptr) return;
  if (tracker_ == nullptr) {
    recorder_->end_wait(delivered, failed, 0);
    return;
  }
  const bool consumed = delivered || failed;
  const metrics::WaitCharges charges =
      consumed ? tracker_->yielded(batch, asked_ns_, Clock::now_ns()) : metrics::WaitCharges();
  recorder_->end_wait(delivered, failed, charges);
  if (!consumed) tracker_->ended(Clock::now_ns());
}

bool IteratorWatch::asks_for_handoff() noexcept {
  const bool first = !std::exchange(saw_first_, true);
  return !first && tracker_ == nullptr && recorder_ != nullptr && loader_->wants_handoff_sample();
}

void IteratorWatch::tell_handoff(const HandoffSample& sample, const char* batch_type,
                                 std::int64_t spent_ns) noexcept {
  if (recorder_ == nullptr) return;
  loader_->sampled_handoff(sample, batch_type);
  recorder_->exclude(spent_ns);
}

void IteratorWatch::end() noexcept {
  if (recorder_ != nullptr) recorder_->end_loop();
  if (tracker_ != nullptr) tracker_->ended(Clock::now_ns());
}

}  // namespace headrace::profile
