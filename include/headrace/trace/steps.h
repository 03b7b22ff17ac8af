// The training steps that the profiler marked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/trace/call_stack.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/event_kind.h"

namespace headrace::trace {

/// One `ProfilerStep#N` of the host, an annotation with the argument `step_num` (JAX, TensorFlow), or a range
/// that stands for it.
struct Step {
  std::int64_t number = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Steps in the order in which they began, and which step each row belongs to.
///
/// If the profiler marked none, annotations that repeat are the steps (`execute_...`, `step[DECODE ...]`,
/// `iteration N`): on the thread with most launches, those of one name but for its digits that no other
/// annotation encloses, at least three, that do not overlap and hold most of the launches between the first
/// and the last of them, and half of all.
///
/// A row of the host belongs to the step in which it began: the last step that began before it, if that has
/// not ended yet. A row of the device belongs to the step of its launch, whenever the device got round to it;
/// if the launch was handed over to another thread, to the step in which that happened. Where only the device
/// marked steps, a row of it belongs to the one in which it began itself.
class Steps {
 public:
  static constexpr std::int32_t kNone = -1;

  Steps() = default;
  Steps(const Columns& columns, const std::vector<EventKind>& kinds, const Correlation& correlation,
        const CallStack& calls);

  const std::vector<Step>& all() const noexcept { return steps_; }
  /// The name of the annotations that are the steps, digits as N; empty if the profiler marked them, or there
  /// are none.
  const std::string& found_by() const noexcept { return found_by_; }
  /// True where only the device marked steps (TensorFlow).
  bool on_device() const noexcept { return on_device_; }
  /// Index into `all()`, kNone for what began outside of every step or whose launch is unknown.
  std::int32_t step_of(Row row) const noexcept { return step_of_[row]; }

 private:
  std::int32_t step_at(std::int64_t ns, std::size_t& last) const noexcept;

  std::vector<Step> steps_;
  std::string found_by_;
  bool on_device_ = false;
  Compact<std::int16_t, std::int32_t> step_of_;
};

}  // namespace headrace::trace
