#include "analysis/device_memory/marked_steps.h"

#include <algorithm>
#include <map>

namespace headrace::analysis::device_memory {
namespace {

constexpr std::string_view kStep = "ProfilerStep#";

std::vector<MarkedStep> pair_marks(const memory::Snapshot& snapshot, const std::int64_t* device) {
  std::vector<const memory::Annotation*> marks;
  for (const memory::Annotation& each : snapshot.annotations) {
    const bool wanted = device == nullptr || each.device == *device;
    if (wanted && snapshot.texts[each.name].starts_with(kStep)) marks.push_back(&each);
  }
  std::stable_sort(marks.begin(), marks.end(), [](auto* a, auto* b) { return a->time_us < b->time_us; });
  std::vector<MarkedStep> steps;
  std::map<trace::Names::Id, std::int64_t> open;
  for (const memory::Annotation* mark : marks) {
    if (mark->begins) {
      open.try_emplace(mark->name, mark->time_us);
    } else if (const auto begun = open.find(mark->name); begun != open.end()) {
      steps.push_back({snapshot.texts[mark->name], begun->second, mark->time_us});
      open.erase(begun);
    }
  }
  return steps;
}

}  // namespace

std::vector<MarkedStep> marked_steps(const memory::Snapshot& snapshot, std::int64_t device) {
  std::vector<MarkedStep> steps = pair_marks(snapshot, &device);
  return steps.empty() ? pair_marks(snapshot, nullptr) : steps;
}

std::string_view step_at(const std::vector<MarkedStep>& steps, std::int64_t time_us) noexcept {
  const auto after = std::partition_point(steps.begin(), steps.end(),
                                          [&](const MarkedStep& step) { return step.end_us < time_us; });
  return after != steps.end() && after->begin_us <= time_us ? after->name : std::string_view();
}

}  // namespace headrace::analysis::device_memory
