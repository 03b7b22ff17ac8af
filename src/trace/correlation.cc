#include "headrace/trace/correlation.h"

#include <algorithm>
#include <tuple>

#include "trace/sort_runs.h"

namespace headrace::trace {

Correlation::Correlation(const Columns& columns, const std::vector<EventKind>& kinds) {
  launch_of_.resize(columns.size(), kNoRow);
  std::vector<Row> calls;
  std::vector<Row> work;
  calls.reserve(columns.size() / 4);
  work.reserve(columns.size() / 4);
  for (Row row = 0; row < columns.size(); ++row) {
    // 0 is what profilers write if there is no correlation.
    const bool correlated = columns.correlation[row] > 0;
    if (kinds[row] == EventKind::runtime && correlated) calls.push_back(row);
    if (is_device_work(kinds[row]) || kinds[row] == EventKind::synchronisation) {
      if (correlated) work.push_back(row);
      if (!correlated) ++without_launch_;
    }
  }
  const auto by_correlation = [&](Row a, Row b) {
    return std::tuple(columns.correlation[a], columns.start_ns[a], a) <
           std::tuple(columns.correlation[b], columns.start_ns[b], b);
  };
  sort_runs(calls, by_correlation);
  sort_runs(work, by_correlation);

  auto call = calls.begin();
  for (const Row row : work) {
    const std::int64_t correlation = columns.correlation[row];
    while (call != calls.end() && columns.correlation[*call] < correlation) ++call;
    if (call != calls.end() && columns.correlation[*call] == correlation) {
      launch_of_[row] = *call;
      started_.push_back(row);
    } else {
      ++without_launch_;
    }
  }
  // Rows of one launch have one correlation, so they stay in the order of their starts.
  sort_runs(started_, [&](Row a, Row b) { return launch_of_[a] < launch_of_[b]; });
  for (std::size_t i = 0; i < started_.size(); ++i) {
    const Row launch = launch_of_[started_[i]];
    if (!launches_.empty() && launches_.back() == launch) continue;
    launches_.push_back(launch);
    first_.push_back(static_cast<std::uint32_t>(i));
  }
  first_.push_back(static_cast<std::uint32_t>(started_.size()));
}

std::span<const Row> Correlation::started_by(Row launch) const noexcept {
  const auto at = std::lower_bound(launches_.begin(), launches_.end(), launch);
  if (at == launches_.end() || *at != launch) return {};
  const auto i = static_cast<std::size_t>(at - launches_.begin());
  return std::span(started_).subspan(first_[i], first_[i + 1] - first_[i]);
}

std::int64_t Correlation::clock_gap_ns(const Columns& columns) const {
  constexpr std::int64_t kOneClockNs = 1'000'000;         // stamps of one clock differ by microseconds
  constexpr std::int64_t kLongQueueNs = 600'000'000'000;  // no queue of launches is as long
  std::vector<std::int64_t> delays;
  delays.reserve(launches_.size());
  for (const Row launch : launches_)
    delays.push_back(columns.start_ns[started_by(launch).front()] - columns.start_ns[launch]);
  if (delays.empty()) return 0;
  const auto middle = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2);
  std::nth_element(delays.begin(), middle, delays.end());
  if (*middle > kLongQueueNs || *middle < -kOneClockNs) {
    return *std::min_element(delays.begin(), delays.end());
  }
  return 0;
}

}  // namespace headrace::trace
