#include "headrace/trace/steps.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

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
  return integer_at(columns.argument(kStepNumber), row).value_or(-1);
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

// --- steps of a trace in which no profiler marked them ---

constexpr std::size_t kMinRanges = 3;
/// Share of launches between the first range and the last: less is a part of a step (an optimizer,
/// a copy).
constexpr double kMinLaunchShare = 0.8;
/// Share of all launches: ranges with less than half are not the loop (weights that are copied before
/// it).
constexpr double kMinShareOfAll = 0.5;

bool is_number_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// "iteration 12" and "iteration 13" are "iteration N".
std::string without_digits(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_number_digit(name[i])) {
      text += name[i];
    } else if (i == 0 || !is_number_digit(name[i - 1])) {
      text += 'N';
    }
  }
  return text;
}

/// The first number in a name, -1 if it has none.
std::int64_t number_in(std::string_view name) noexcept {
  const std::size_t at = name.find_first_of("0123456789");
  if (at == std::string_view::npos) return -1;
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), number);
  return error == std::errc() ? number : -1;
}

/// The lane with most launches, and when they began, ascending.
struct LaunchLane {
  std::uint32_t lane = 0;
  std::vector<std::int64_t> at_ns;
};

std::optional<LaunchLane> launch_lane(const Columns& columns, const std::vector<EventKind>& kinds,
                                      const Correlation& correlation) {
  std::vector<std::vector<std::int64_t>> launches(columns.lanes.size());
  for (Row row = 0; row < columns.size(); ++row) {
    if (kinds[row] == EventKind::runtime && !correlation.started_by(row).empty())
      launches[columns.lane[row]].push_back(columns.start_ns[row]);
  }
  const auto most = std::max_element(launches.begin(), launches.end(),
                                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (most == launches.end() || most->empty()) return std::nullopt;
  std::sort(most->begin(), most->end());
  return LaunchLane{static_cast<std::uint32_t>(most - launches.begin()), std::move(*most)};
}

bool is_enclosed(const std::vector<EventKind>& kinds, const CallStack& calls, Row row) {
  for (Row at = calls.parent_of(row); at != kNoRow; at = calls.parent_of(at)) {
    if (kinds[at] == EventKind::annotation) return true;
  }
  return false;
}

/// Launches in [begin, end).
std::ptrdiff_t between(const std::vector<std::int64_t>& at_ns, std::int64_t begin_ns, std::int64_t end_ns) {
  return std::lower_bound(at_ns.begin(), at_ns.end(), end_ns) -
         std::lower_bound(at_ns.begin(), at_ns.end(), begin_ns);
}

bool holds_the_launches(const std::vector<Step>& ranges, const LaunchLane& launches) {
  std::ptrdiff_t inside = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0 && ranges[i].start_ns < ranges[i - 1].end_ns) return false;
    inside += between(launches.at_ns, ranges[i].start_ns, ranges[i].end_ns);
  }
  const std::ptrdiff_t there = between(launches.at_ns, ranges.front().start_ns, ranges.back().end_ns);
  return there > 0 &&
         static_cast<double>(inside) >= std::max(kMinLaunchShare * static_cast<double>(there),
                                                 kMinShareOfAll * static_cast<double>(launches.at_ns.size()));
}

bool counts_up(const std::vector<Step>& ranges) {
  return ranges.front().number >= 0 &&
         std::adjacent_find(ranges.begin(), ranges.end(), [](const Step& a, const Step& b) {
           return a.number >= b.number;
         }) == ranges.end();
}

struct RepeatedRanges {
  std::string name;  ///< digits as N; empty if nothing repeats
  std::vector<Step> ranges;
};

/// The annotations that stand for steps, as `Steps` says.
RepeatedRanges repeated_ranges(const Columns& columns, const std::vector<EventKind>& kinds,
                               const Correlation& correlation, const CallStack& calls) {
  const std::optional<LaunchLane> launches = launch_lane(columns, kinds, correlation);
  if (!launches) return {};
  std::map<std::string, std::vector<Step>> by_name;
  for (Row row = 0; row < columns.size(); ++row) {
    if (kinds[row] != EventKind::annotation || columns.lane[row] != launches->lane) continue;
    if (is_enclosed(kinds, calls, row)) continue;
    const std::string_view name = columns.name_of(row);
    by_name[without_digits(name)].push_back({number_in(name), columns.start_ns[row], columns.end_ns(row)});
  }
  RepeatedRanges best;
  bool best_counts = false;
  for (auto& [name, ranges] : by_name) {
    if (ranges.size() < kMinRanges) continue;
    std::sort(ranges.begin(), ranges.end(),
              [](const Step& a, const Step& b) { return a.start_ns < b.start_ns; });
    if (!holds_the_launches(ranges, *launches)) continue;
    const bool counts = counts_up(ranges);
    if (!best.name.empty() && std::pair(counts, ranges.size()) <= std::pair(best_counts, best.ranges.size()))
      continue;
    best = {name, ranges};
    best_counts = counts;
  }
  for (std::size_t i = 0; !best_counts && i < best.ranges.size(); ++i)
    best.ranges[i].number = static_cast<std::int64_t>(i);
  return best;
}

}  // namespace

Steps::Steps(const Columns& columns, const std::vector<EventKind>& kinds, const Correlation& correlation,
             const CallStack& calls) {
  for (const Row row : numbered_rows(columns, kinds)) {
    steps_.push_back({number_at(columns, row), columns.start_ns[row], columns.end_ns(row)});
    on_device_ = kinds[row] == EventKind::device_annotation;
  }
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
    Row began_by = is_on_device(kinds[row]) && !on_device_ ? correlation.launch_of(row) : row;
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
