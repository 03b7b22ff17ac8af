#include "headrace/timeline/rank_alignment.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace headrace::timeline {
namespace {

constexpr std::size_t kFewest = 8;
constexpr std::ptrdiff_t kFarthest = 256;
/// Pairs of one try; more say nothing new.
constexpr std::size_t kCompared = 512;
/// Share of a try's pairs that must have equal names: a profiler may lose an event.
constexpr double kSameNames = 0.95;
/// So many pairs deviate by the error at most. (Half of them would fit by chance where two collectives alternate.)
constexpr double kWithinError = 0.9;
constexpr std::int64_t kMaxErrorNs = 5'000'000;
/// Errors that differ by less say nothing.
constexpr std::int64_t kEqualErrorNs = 100'000;

std::int64_t quantile(std::vector<std::int64_t>& values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// first[i + ahead] is other[i].
std::optional<RankAlignment> tried(std::span<const CollectiveEnd> first, std::span<const CollectiveEnd> other,
                                   std::ptrdiff_t ahead) {
  const auto begin = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, -ahead));
  const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, ahead));
  if (begin >= other.size() || offset >= first.size()) return std::nullopt;
  const std::size_t count = std::min(other.size() - begin, first.size() - offset);
  if (count < kFewest || 2 * count < std::min(first.size(), other.size())) return std::nullopt;
  const std::size_t every = (count + kCompared - 1) / kCompared;
  std::vector<std::int64_t> differences;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < count; i += every) {
    const CollectiveEnd& here = first[offset + i];
    const CollectiveEnd& there = other[begin + i];
    ++compared;
    if (here.name == there.name) differences.push_back(here.end_ns - there.end_ns);
  }
  if (static_cast<double>(differences.size()) < kSameNames * static_cast<double>(compared))
    return std::nullopt;
  RankAlignment found;
  found.matched = count;
  found.shift_ns = quantile(differences, 0.5);
  for (std::int64_t& difference : differences) difference = std::abs(difference - found.shift_ns);
  found.error_ns = quantile(differences, kWithinError);
  return found;
}

}  // namespace

RankAlignment align_ranks(std::span<const CollectiveEnd> first, std::span<const CollectiveEnd> other,
                          bool clocks_agree) {
  RankAlignment best;
  const auto is_better = [&](const RankAlignment& found) {
    if (!best.error_ns) return true;
    const std::int64_t gain = *best.error_ns - *found.error_ns;
    if (std::abs(gain) > kEqualErrorNs || !clocks_agree) return gain > 0;
    return std::abs(found.shift_ns) < std::abs(best.shift_ns);
  };
  for (std::ptrdiff_t far = 0; far <= kFarthest; ++far) {
    for (const std::ptrdiff_t ahead : {far, -far}) {
      const std::optional<RankAlignment> found = tried(first, other, ahead);
      if (found && *found->error_ns <= kMaxErrorNs && is_better(*found)) best = *found;
    }
  }
  return best;
}

std::string RankAlignment::sentence() const {
  if (!error_ns) return "its clock is laid over the first trace's by their zeros: no common collectives";
  return fmt::format("{:.3f} ms were added to its times by {} collectives; {:.3f} ms may remain",
                     static_cast<double>(shift_ns) * 1e-6, matched, static_cast<double>(*error_ns) * 1e-6);
}

}  // namespace headrace::timeline
