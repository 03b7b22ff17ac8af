// The training steps that the profiler marked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/trace/call_stack.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/correlation.h"
#include "headrace/trace/event_kind.h"

namespace headrace::trace {

/// One `ProfilerStep#N` of the host.
struct Step {
  std::int64_t number = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Steps in the order in which they began, and which step each row belongs to.
///
/// A row of the host belongs to the step in which it began: the last step that began before it, if that has
/// not ended yet. A row of the device belongs to the step of its launch, whenever the device got round to it;
/// if the launch was handed over to another thread, to the step in which that happened.
class Steps {
 public:
  static constexpr std::int32_t kNone = -1;

  Steps() = default;
  Steps(const Columns& columns, const std::vector<EventKind>& kinds, const Correlation& correlation,
        const CallStack& calls);

  const std::vector<Step>& all() const noexcept { return steps_; }
  /// Index into `all()`, kNone for what began outside of every step or whose launch is unknown.
  std::int32_t step_of(Row row) const noexcept { return step_of_[row]; }

 private:
  std::int32_t step_at(std::int64_t ns, std::size_t& last) const noexcept;

  std::vector<Step> steps_;
  Compact<std::int16_t, std::int32_t> step_of_;
};

}  // namespace headrace::trace
