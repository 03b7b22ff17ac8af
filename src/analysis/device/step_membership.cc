#include "analysis/device/step_membership.h"

#include <algorithm>

namespace headrace::analysis::device {

std::vector<std::int32_t> step_membership(const trace::Trace& trace, std::span<const Work> work) {
  constexpr std::int32_t kNone = trace::Steps::kNone;
  const std::vector<trace::Step>& steps = trace.steps.all();
  std::vector<std::int64_t> ends;
  for (const trace::Step& step : steps) ends.push_back(step.end_ns);
  for (const Work& each : work) {
    const std::int32_t step = trace.steps.step_of(each.row);
    if (step == kNone) continue;
    std::int64_t& end_ns = ends[static_cast<std::size_t>(step)];
    end_ns = std::max(end_ns, each.end_ns);
  }
  std::vector<std::int32_t> result;
  result.reserve(work.size());
  // Where launches are recorded, work without one is of what came before the recording, or of nobody's step.
  const bool launches_known = trace.correlation.without_launch() < trace.device_rows.size();
  for (const Work& each : work) {
    if (launches_known && trace.correlation.launch_of(each.row) == trace::kNoRow) {
      result.push_back(kNone);
      continue;
    }
    const auto covers = [&](std::int32_t step) {
      const auto i = static_cast<std::size_t>(step);
      return steps[i].start_ns <= each.start_ns && each.start_ns < ends[i];
    };
    const std::int32_t by_launch = trace.steps.step_of(each.row);
    if (by_launch != kNone && covers(by_launch)) {
      result.push_back(by_launch);
      continue;
    }
    const auto behind =
        std::upper_bound(steps.begin(), steps.end(), each.start_ns,
                         [](std::int64_t ns, const trace::Step& step) { return ns < step.start_ns; });
    // Only the step before may still be at work; further back none is looked for.
    const auto last = static_cast<std::int32_t>(behind - steps.begin()) - 1;
    if (last >= 0 && covers(last)) {
      result.push_back(last);
    } else {
      result.push_back(last >= 1 && covers(last - 1) ? last - 1 : kNone);
    }
  }
  return result;
}

}  // namespace headrace::analysis::device
