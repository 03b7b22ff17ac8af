#include "headrace/analysis/device/intervals.h"

#include <algorithm>
#include <utility>

namespace headrace::analysis::device {

void append(Intervals& intervals, Interval interval) {
  if (interval.end_ns <= interval.begin_ns) return;
  if (!intervals.empty() && interval.begin_ns <= intervals.back().end_ns) {
    intervals.back().end_ns = std::max(intervals.back().end_ns, interval.end_ns);
  } else {
    intervals.push_back(interval);
  }
}

Intervals merged(std::vector<Interval> intervals) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier))
    std::sort(intervals.begin(), intervals.end(), earlier);
  Intervals result;
  for (const Interval& interval : intervals) append(result, interval);
  return result;
}

Intervals united(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const bool from_a = j == b.size() || (i < a.size() && a[i].begin_ns <= b[j].begin_ns);
    append(result, from_a ? a[i++] : b[j++]);
  }
  return result;
}

Intervals intersected(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    append(result, {std::max(a[i].begin_ns, b[j].begin_ns), std::min(a[i].end_ns, b[j].end_ns)});
    if (a[i].end_ns < b[j].end_ns) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

Intervals subtracted(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals result;
  std::size_t j = 0;
  for (Interval rest : a) {
    while (j < b.size() && b[j].end_ns <= rest.begin_ns) ++j;
    for (std::size_t k = j; k < b.size() && b[k].begin_ns < rest.end_ns; ++k) {
      append(result, {rest.begin_ns, b[k].begin_ns});
      rest.begin_ns = b[k].end_ns;
    }
    append(result, rest);
  }
  return result;
}

std::int64_t total_ns(std::span<const Interval> intervals) noexcept {
  std::int64_t total = 0;
  for (const Interval& interval : intervals) total += interval.end_ns - interval.begin_ns;
  return total;
}

Cover::Cover(const Intervals& intervals) : intervals_(&intervals), before_ns_{0} {
  for (const Interval& each : intervals)
    before_ns_.push_back(before_ns_.back() + each.end_ns - each.begin_ns);
}

std::int64_t Cover::until(std::int64_t ns) const noexcept {
  const auto at = std::partition_point(intervals_->begin(), intervals_->end(),
                                       [&](const Interval& each) { return each.end_ns <= ns; });
  const std::int64_t whole_ns = before_ns_[static_cast<std::size_t>(at - intervals_->begin())];
  return at == intervals_->end() ? whole_ns : whole_ns + std::max<std::int64_t>(0, ns - at->begin_ns);
}

}  // namespace headrace::analysis::device
