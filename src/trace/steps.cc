#include "headrace/trace/steps.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "trace/repeated_ranges.h"

namespace headrace::trace {
namespace {

constexpr std::string_view kPrefix = "ProfilerStep#";
/// The argument of what JAX and TensorFlow call a step.
constexpr std::string_view kStepNumber = "step_num";

/// The number behind the prefix, or -1.
std::int64_t number_of(std::string_view name) noexcept {
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

std::int64_t number_at(const Columns& columns, Row row) {
  const ArgumentColumn* const numbers = columns.argument(kStepNumber);
  const auto at = numbers->find(row);
  return at ? numbers->integers[*at] : -1;
}

/// Annotations that say their step's number: those of the host; where it has none, those of the device that
/// comes first.
std::vector<Row> numbered_rows(const Columns& columns, const std::vector<EventKind>& kinds) {
  std::vector<Row> of_host;
  std::vector<Row> of_device;
  const ArgumentColumn* const numbers = columns.argument(kStepNumber);
  if (numbers == nullptr) return of_host;
  for (const Row row : numbers->rows) {
    if (kinds[row] == EventKind::annotation) of_host.push_back(row);
    if (kinds[row] == EventKind::device_annotation &&
        (of_device.empty() || columns.lane[row] == columns.lane[of_device.front()]))
      of_device.push_back(row);
  }
  return of_host.empty() ? of_device : of_host;
}

}  // namespace

Steps::Steps(const Columns& columns, const std::vector<EventKind>& kinds, const Correlation& correlation,
             const CallStack& calls) {
  for (const Row row : numbered_rows(columns, kinds))
    steps_.push_back({number_at(columns, row), columns.start_ns[row], columns.end_ns(row)});
  for (Row row = 0; row < columns.size(); ++row) {
    // Old traces have them among the operators.
    if (kinds[row] != EventKind::annotation && kinds[row] != EventKind::operation) continue;
    const std::int64_t number = number_of(columns.name_of(row));
    if (number >= 0) steps_.push_back({number, columns.start_ns[row], columns.end_ns(row)});
  }
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return std::tuple(a.start_ns, a.number) < std::tuple(b.start_ns, b.number);
  });
  if (steps_.empty()) {
    RepeatedRanges found = repeated_ranges(columns, kinds, correlation, calls);
    found_by_ = std::move(found.name);
    steps_ = std::move(found.ranges);
  }
  std::size_t last = 0;
  for (Row row = 0; row < columns.size(); ++row) {
    Row began_by = is_on_device(kinds[row]) ? correlation.launch_of(row) : row;
    if (began_by != kNoRow) began_by = calls.origin_of(began_by);
    step_of_.push_back(began_by == kNoRow ? kNone : step_at(columns.start_ns[began_by], last));
  }
}

/// `last`: the step that began last before the moment that was asked for before, which hardly ever changes.
std::int32_t Steps::step_at(std::int64_t ns, std::size_t& last) const noexcept {
  if (steps_.empty()) return kNone;
  const bool same =
      steps_[last].start_ns <= ns && (last + 1 == steps_.size() || ns < steps_[last + 1].start_ns);
  if (!same) {
    const auto behind =
        std::upper_bound(steps_.begin(), steps_.end(), ns,
                         [](std::int64_t at, const Step& step) { return at < step.start_ns; });
    if (behind == steps_.begin()) return kNone;
    last = static_cast<std::size_t>(behind - steps_.begin() - 1);
  }
  return ns < steps_[last].end_ns ? static_cast<std::int32_t>(last) : kNone;
}

}  // namespace headrace::trace
