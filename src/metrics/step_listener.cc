#include "headrace/metrics/step_listener.h"

#include <algorithm>

namespace headrace::metrics {

namespace {

/// End of backward: reported by autograd's hooks for this forward, else the latest that it can have been.
std::int64_t end_of(const StepMarks::Heard& heard) noexcept {
  const bool told = heard.backward_ended_ns != 0 && heard.backward_ended_ns >= heard.forward_began_ns;
  return told ? heard.backward_ended_ns : heard.update_began_ns;
}

}  // namespace

void StepListener::join(StepMarks& marks) noexcept {
  leave();
  marks_ = &marks;
  place_ = marks.join();
}

void StepListener::leave() noexcept {
  if (place_ >= 0) marks_->leave(place_);
  place_ = StepMarks::kNoPlace;
}

void StepListener::exclude(std::int64_t ns) noexcept {
  if (place_ < 0) return;
  const StepMarks::Heard heard = marks_->heard(place_);
  if (heard.forward_began_ns == 0) excluded_before_forward_ns_ += ns;
  const std::int64_t end = end_of(heard);
  if (end != end_seen_ns_) {
    end_seen_ns_ = end;
    excluded_after_end_ns_ = 0;
  }
  if (end != 0) excluded_after_end_ns_ += ns;
}

StepListener::Cuts StepListener::cuts_of(const StepMarks::Heard& heard, std::int64_t delivered,
                                         std::int64_t now) const noexcept {
  Cuts cuts;
  const std::int64_t forward = heard.forward_began_ns;
  if (forward < delivered || forward > now) return cuts;
  cuts.before_forward_ns = std::max<std::int64_t>(0, forward - delivered - excluded_before_forward_ns_);
  const std::int64_t end = end_of(heard);
  if (end < forward || end > now) return cuts;
  const std::int64_t excluded = end == end_seen_ns_ ? excluded_after_end_ns_ : 0;
  cuts.tail_ns = std::max<std::int64_t>(0, now - end - excluded);
  return cuts;
}

}  // namespace headrace::metrics
