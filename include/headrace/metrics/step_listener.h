// Cuts the current step of one loop where the marks of its process say.
//
//      GetNext   batch      forward      backward     GetNext
//      called    there      begins       ends         called
//         |--wait--|----------|------------|------------|
//         |  iteration gap    | forward and|    tail    |
//         |                   | backward   |            |
#pragma once

#include <cstdint>

#include "headrace/metrics/step_marks.h"

namespace headrace::metrics {

/// One per loop, called by its thread. Never throws or blocks.
class StepListener {
 public:
  /// Unknown: no marks were recorded, or they cannot be attributed to this loop.
  static constexpr std::int64_t kUnknown = -1;

  struct Cuts {
    std::int64_t before_forward_ns = kUnknown;  ///< from the batch to the beginning of forward
    std::int64_t tail_ns = kUnknown;            ///< from the end of backward; known only with the former
  };

  StepListener() = default;
  ~StepListener() { leave(); }
  StepListener(const StepListener&) = delete;
  StepListener& operator=(const StepListener&) = delete;

  /// Listens from now on; `marks` must outlive it.
  void join(StepMarks& marks) noexcept;
  void leave() noexcept;

  /// A batch was delivered: what was heard until now is of the step before.
  void begin_step() noexcept {
    if (place_ < 0) return;
    marks_->forget(place_);
    disturbed_ = false;
    excluded_before_forward_ns_ = 0;
    excluded_after_end_ns_ = 0;
    end_seen_ns_ = 0;
  }
  /// The last `ns` were another loop's wait, and no time of this step.
  void exclude(std::int64_t ns) noexcept;
  /// Another loop ran from beginning to end within this step (validation): marks may be of its forwards.
  void disturb() noexcept { disturbed_ = true; }

  /// The cuts of the step whose batch came at `delivered` and that ends now, without excluded time. Marks
  /// from outside of the step do not count.
  Cuts cuts(std::int64_t delivered, std::int64_t now) const noexcept {
    if (place_ < 0 || disturbed_ || !marks_->heard_forward(place_)) return {};
    return cuts_of(marks_->heard(place_), delivered, now);
  }

 private:
  Cuts cuts_of(const StepMarks::Heard& heard, std::int64_t delivered, std::int64_t now) const noexcept;

  StepMarks* marks_ = nullptr;
  int place_ = StepMarks::kNoPlace;
  bool disturbed_ = false;
  std::int64_t excluded_before_forward_ns_ = 0;
  std::int64_t excluded_after_end_ns_ = 0;  ///< behind end_seen_ns_
  std::int64_t end_seen_ns_ = 0;            ///< the end of backward when time was last excluded
};

}  // namespace headrace::metrics
