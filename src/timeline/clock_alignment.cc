#include "headrace/timeline/clock_alignment.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace headrace::timeline {
namespace {

constexpr std::size_t kEnough = 3;
/// Ranges that are tried out for a shift; more say nothing new.
constexpr std::size_t kTried = 64;
/// Between two stamps of one call: the profiler's own work, and a thread that lost its core in between.
constexpr std::int64_t kSlackNs = 2'000'000;
/// Spreads that differ by less say nothing.
constexpr std::int64_t kEqualSpreadNs = 100'000;
/// The wall clocks of one machine differ by no more where nobody set them.
constexpr std::int64_t kSettledNs = 1'000'000'000;

std::int64_t median(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::int64_t middle_of(const TimeRange& range) {
  return range.begin_ns + (range.end_ns - range.begin_ns) / 2;
}

bool is_alike(const TimeRange& a, const TimeRange& b) {
  const std::int64_t first = a.end_ns - a.begin_ns;
  const std::int64_t second = b.end_ns - b.begin_ns;
  return std::abs(first - second) <= kSlackNs / 4 + std::max(first, second) / 5;
}

/// Shift of each pair of calls that are `near` or nearer to each other after `shift`.
std::vector<std::int64_t> offsets(std::span<const TimeRange> ours, std::span<const TimeRange> theirs,
                                  std::int64_t shift, std::int64_t near) {
  std::vector<std::int64_t> found;
  std::size_t next = 0;
  for (const TimeRange& range : theirs) {
    const std::int64_t wanted = middle_of(range) - shift;
    while (next + 1 < ours.size() &&
           std::abs(middle_of(ours[next + 1]) - wanted) <= std::abs(middle_of(ours[next]) - wanted)) {
      ++next;
    }
    if (next >= ours.size()) break;
    if (std::abs(middle_of(ours[next]) - wanted) > near || !is_alike(ours[next], range)) continue;
    found.push_back(middle_of(range) - middle_of(ours[next]));
  }
  return found;
}

struct Fit {
  std::int64_t shift = 0;
  std::int64_t spread = 0;
  std::size_t matched = 0;

  /// More pairs, else clearly less spread, else the smaller shift: equal steps fit one period further on as
  /// well.
  bool is_better_than(const Fit& other) const {
    if (matched != other.matched) return matched > other.matched;
    if (std::abs(spread - other.spread) > kEqualSpreadNs) return spread < other.spread;
    return std::abs(shift) < std::abs(other.shift);
  }
};

Fit fit(std::span<const TimeRange> ours, std::span<const TimeRange> theirs, std::int64_t shift,
        std::int64_t near) {
  Fit fit{shift, 0, 0};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::int64_t> found = offsets(ours, theirs, fit.shift, near);
    if (found.empty()) return round == 0 ? Fit{shift, 0, 0} : fit;
    fit.matched = found.size();
    fit.shift = median(found);
    for (std::int64_t& offset : found) offset = std::abs(offset - fit.shift);
    fit.spread = median(found);
    near = std::max<std::int64_t>(kSlackNs, 8 * fit.spread);
  }
  return fit;
}

}  // namespace

std::int64_t WallClock::unix_ns(std::int64_t monotonic_ns) const noexcept {
  const auto after = std::upper_bound(
      anchors_.begin(), anchors_.end(), monotonic_ns,
      [](std::int64_t ns, const profile::TimeAnchor& anchor) { return ns < anchor.monotonic_ns; });
  if (after == anchors_.begin()) return monotonic_ns - after->monotonic_ns + after->realtime_ns;
  const profile::TimeAnchor& before = *std::prev(after);
  if (after == anchors_.end()) return monotonic_ns - before.monotonic_ns + before.realtime_ns;
  const auto gap = static_cast<double>(after->monotonic_ns - before.monotonic_ns);
  const std::int64_t drift =
      (after->realtime_ns - after->monotonic_ns) - (before.realtime_ns - before.monotonic_ns);
  const std::int64_t passed = monotonic_ns - before.monotonic_ns;
  return before.realtime_ns + passed +
         static_cast<std::int64_t>(static_cast<double>(drift) * (static_cast<double>(passed) / gap));
}

ClockAlignment align_clocks(std::span<const TimeRange> ours, std::span<const TimeRange> theirs,
                            bool clocks_agree) {
  ClockAlignment result;
  if (ours.empty() || theirs.empty()) return result;
  Fit best;
  if (clocks_agree) best = fit(ours, theirs, 0, kSlackNs);
  if (best.matched * 5 < std::min(ours.size(), theirs.size()) * 4) {
    const auto tried = theirs.first(std::min(theirs.size(), kTried));
    for (const TimeRange& start : ours) {
      if (!is_alike(start, tried.front())) continue;
      const Fit candidate = fit(ours, tried, middle_of(tried.front()) - middle_of(start), kSlackNs);
      if (clocks_agree && std::abs(candidate.shift) > kSettledNs) continue;
      if (candidate.is_better_than(best)) best = candidate;
    }
    if (best.matched > 0) best = fit(ours, theirs, best.shift, kSlackNs);
  }
  if (best.matched == 0) return result;
  result.matched = best.matched;
  result.found_ns = best.shift;
  // A shift that few pairs of many agree on is chance.
  result.applied = best.matched >= kEnough && best.matched * 2 >= std::min(theirs.size(), ours.size()) &&
                   (!clocks_agree || std::abs(best.shift) <= kSettledNs);
  if (result.applied) result.shift_ns = best.shift;
  const std::int64_t remaining = result.applied ? 0 : std::abs(best.shift);
  result.error_ns = std::max<std::int64_t>(1000, remaining + 2 * best.spread);
  return result;
}

std::string ClockAlignment::sentence() const {
  if (!error_ns)
    return "clocks laid over each other by wall clock alone: no GetNext is in both, the error is unknown";
  char text[192];
  std::snprintf(
      text, sizeof(text),
      applied
          ? "clocks laid over each other by %zu GetNext calls that are in both: shift %.3f ms, error %.3f ms"
          : "clocks laid over each other by wall clock: %zu GetNext calls that are in both ask for a shift "
            "of %.3f ms, too few to rely on; error %.3f ms",
      matched, static_cast<double>(found_ns) * 1e-6, static_cast<double>(*error_ns) * 1e-6);
  return text;
}

}  // namespace headrace::timeline
