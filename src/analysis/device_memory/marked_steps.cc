#include "analysis/device_memory/marked_steps.h"

#include <algorithm>
#include <utility>

namespace headrace::analysis::device_memory {
namespace {

constexpr std::string_view kStep = "ProfilerStep#";

}  // namespace

MarkedSteps::MarkedSteps(const memory::Snapshot& snapshot) {
  std::vector<const memory::Annotation*> marks;
  for (const memory::Annotation& each : snapshot.annotations) {
    if (snapshot.texts[each.name].starts_with(kStep)) marks.push_back(&each);
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const auto* a, const auto* b) { return a->time_us < b->time_us; });
  std::map<std::pair<std::int64_t, trace::Names::Id>, std::int64_t> open;
  for (const memory::Annotation* mark : marks) {
    const std::pair key(mark->device, mark->name);
    if (mark->begins) {
      open.try_emplace(key, mark->time_us);
    } else if (const auto begun = open.find(key); begun != open.end()) {
      of_device_[mark->device].push_back({snapshot.texts[mark->name], begun->second, mark->time_us});
      open.erase(begun);
    }
  }
}

const std::vector<MarkedStep>& MarkedSteps::of(std::int64_t device) const noexcept {
  static const std::vector<MarkedStep> kNoSteps;
  if (const auto own = of_device_.find(device); own != of_device_.end()) return own->second;
  return of_device_.empty() ? kNoSteps : of_device_.begin()->second;
}

std::string_view MarkedSteps::at(std::int64_t device, std::int64_t time_us) const noexcept {
  const std::vector<MarkedStep>& steps = of(device);
  const auto after = std::partition_point(steps.begin(), steps.end(),
                                          [&](const MarkedStep& step) { return step.end_us < time_us; });
  return after != steps.end() && after->begin_us <= time_us ? after->name : std::string_view();
}

}  // namespace headrace::analysis::device_memory
