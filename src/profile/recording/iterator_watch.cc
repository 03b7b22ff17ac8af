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
  recorder_ = std::make_shared<LoopRecorder>(loader_);
} catch (...) {
  // No memory for a recorder: this epoch is not recorded, the loop continues.
  recorder_.reset();
}

void IteratorWatch::restart() noexcept {
  if (recorder_ != nullptr) recorder_->end_loop();
  if (tracker_ != nullptr) tracker_->restart(Clock::now_ns());
  if (outer_ == nullptr) begin();
}

void IteratorWatch::end_loop() noexcept {
  if (recorder_ == nullptr) return;
  recorder_->end_loop();
  recorder_.reset();
}

void IteratorWatch::nest_in(std::shared_ptr<LoopRecorder> outer) noexcept { outer_ = std::move(outer); }

void IteratorWatch::add_part(const metrics::WaitCharges& charges) noexcept {
  outer_charges_.ready = charges.ready && (parts_ == 0 || outer_charges_.ready);
  outer_charges_.workers_first |= charges.workers_first;
  outer_charges_.made_from_ns = charges.made_from_ns;
  outer_charges_.made_until_ns = charges.made_until_ns;
  outer_charges_.made_by = charges.made_by;
  for (std::size_t i = 0; i < charges.count; ++i) {
    const metrics::WaitCharges::Charge& each = charges.charges[i];
    outer_charges_.add(each.what, each.op, each.ns);
  }
  ++parts_;
}

void IteratorWatch::end_outer_wait(bool delivered, bool failed) noexcept {
  if (outer_ == nullptr) return;
  if (parts_ > 0) {
    outer_->end_wait(delivered, failed, outer_charges_);
  } else {
    outer_->end_wait(delivered, failed, 0);
  }
  outer_charges_ = {};
  parts_ = 0;
}

void IteratorWatch::begin_wait() noexcept {
  if (outer_ != nullptr) {
    asked_ns_ = Clock::now_ns();
    return;
  }
  if (recorder_ == nullptr) begin();
  if (tracker_ != nullptr) asked_ns_ = Clock::now_ns();
  if (recorder_ != nullptr) recorder_->begin_wait();
}

void IteratorWatch::end_wait(bool delivered, bool failed, std::int64_t batch) noexcept {
  const bool consumed = delivered || failed;
  if (outer_ != nullptr) {
    if (tracker_ != nullptr && consumed) {
      const metrics::WaitCharges charges = tracker_->yielded(batch, asked_ns_, Clock::now_ns());
      made_by_ = charges.made_by;
      add_part(charges);
    }
    if (tracker_ != nullptr && !consumed) tracker_->ended(Clock::now_ns());
    return;
  }
  if (recorder_ == nullptr) return;
  metrics::WaitCharges charges;
  if (tracker_ != nullptr && consumed) {
    charges = tracker_->yielded(batch, asked_ns_, Clock::now_ns());
    made_by_ = charges.made_by;
  }
  if (tracker_ == nullptr) {
    recorder_->end_wait(delivered, failed, 0);
  } else {
    recorder_->end_wait(delivered, failed, charges);
  }
  if (tracker_ != nullptr && !consumed) tracker_->ended(Clock::now_ns());
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
