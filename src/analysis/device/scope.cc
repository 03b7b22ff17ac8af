#include "headrace/analysis/device/scope.h"

#include <algorithm>
#include <iterator>

namespace headrace::analysis::device {

bool last_step_is_cut_off(const trace::Trace& trace) {
  const std::size_t steps = trace.steps.all().size();
  if (steps < 2) return false;
  if (trace.file.notes.cut) return true;
  std::size_t last = 0;
  std::size_t before = 0;
  for (const trace::Row row : trace.device_rows) {
    const std::int32_t step = trace.steps.step_of(row);
    if (step == static_cast<std::int32_t>(steps) - 1) ++last;
    if (step == static_cast<std::int32_t>(steps) - 2) ++before;
  }
  return 5 * last < 4 * before;
}

std::int32_t step_of(const trace::Trace& trace, trace::Row row) noexcept {
  const std::int32_t by_launch = trace.steps.step_of(row);
  const bool launched = trace.correlation.launch_of(row) != trace::kNoRow;
  if (by_launch != trace::Steps::kNone || launched || !trace::is_on_device(trace.kinds[row]))
    return by_launch;
  const std::vector<trace::Step>& steps = trace.steps.all();
  const std::int64_t began_ns = trace.columns().start_ns[row];
  const auto behind =
      std::upper_bound(steps.begin(), steps.end(), began_ns,
                       [](std::int64_t at, const trace::Step& step) { return at < step.start_ns; });
  if (behind == steps.begin() || began_ns >= std::prev(behind)->end_ns) return trace::Steps::kNone;
  return static_cast<std::int32_t>(behind - steps.begin() - 1);
}

Selection::Selection(const trace::Trace& trace, const Scope& scope)
    : trace_(&trace), begin_ns_(scope.begin_ns), end_ns_(scope.end_ns), any_step_(scope.steps.empty()) {
  const std::string rank = "rank " + std::to_string(trace.rank);
  const std::vector<trace::Step>& steps = trace.steps.all();
  wanted_.reserve(steps.size());
  // Sorted, because all of a long run's steps may be asked for.
  std::vector<std::int64_t> asked = scope.steps;
  std::sort(asked.begin(), asked.end());
  std::vector<std::int64_t> there;
  there.reserve(steps.size());
  for (const trace::Step& step : steps) {
    wanted_.push_back(std::binary_search(asked.begin(), asked.end(), step.number));
    there.push_back(step.number);
  }
  std::sort(there.begin(), there.end());
  for (const std::int64_t number : scope.steps) {
    if (!std::binary_search(there.begin(), there.end(), number))
      notes_.push_back(rank + " has no step " + std::to_string(number));
  }
  // A step that is asked for by its number is wanted as it is.
  if (scope.keep_cut_off_step || !any_step_ || !last_step_is_cut_off(trace)) return;
  if (steps.back().start_ns >= end_ns_) return;
  end_ns_ = steps.back().start_ns;
  notes_.push_back(rank + ": the last step (ProfilerStep#" + std::to_string(steps.back().number) +
                   ") is cut off and left out");
}

bool Selection::is_in_a_step(trace::Row row) const noexcept {
  const std::int32_t step = step_of(*trace_, row);
  return step != trace::Steps::kNone && wanted_[static_cast<std::size_t>(step)];
}

}  // namespace headrace::analysis::device
