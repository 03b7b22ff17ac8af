#include "trace/repeated_ranges.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace headrace::trace {
namespace {

constexpr std::size_t kMinRanges = 3;
/// Of the launches between the first range and the last: what holds fewer is a part of a step (an optimizer, a copy).
constexpr double kMinLaunchShare = 0.8;

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
  const std::ptrdiff_t all = between(launches.at_ns, ranges.front().start_ns, ranges.back().end_ns);
  return all > 0 && static_cast<double>(inside) >= kMinLaunchShare * static_cast<double>(all);
}

bool counts_up(const std::vector<Step>& ranges) {
  return ranges.front().number >= 0 &&
         std::adjacent_find(ranges.begin(), ranges.end(), [](const Step& a, const Step& b) {
           return a.number >= b.number;
         }) == ranges.end();
}

}  // namespace

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

}  // namespace headrace::trace
