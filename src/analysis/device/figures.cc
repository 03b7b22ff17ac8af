#include "headrace/analysis/device/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace::analysis::device {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Description describe(std::vector<double> values) {
  Description result;
  result.count = values.size();
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    result.std = std::sqrt(squares / (count - 1));
  }
  result.min = values.front();
  result.p25 = quantile(values, 0.25);
  result.p50 = quantile(values, 0.5);
  result.p75 = quantile(values, 0.75);
  result.max = values.back();
  return result;
}

TimeWeighted weigh(std::vector<Held> levels) {
  std::sort(levels.begin(), levels.end(), [](const Held& a, const Held& b) { return a.level < b.level; });
  TimeWeighted result;
  double sum = 0;
  for (const Held& held : levels) {
    result.total_ns += held.duration_ns;
    sum += held.level * static_cast<double>(held.duration_ns);
  }
  if (result.total_ns == 0) return result;
  const auto total = static_cast<double>(result.total_ns);
  result.mean = sum / total;
  std::int64_t behind_ns = 0;
  for (const Held& held : levels) {
    if (held.duration_ns == 0) continue;
    behind_ns += held.duration_ns;
    const auto behind = static_cast<double>(behind_ns);
    if (std::isnan(result.p25) && behind >= 0.25 * total) result.p25 = held.level;
    if (std::isnan(result.p50) && behind >= 0.5 * total) result.p50 = held.level;
    if (std::isnan(result.p75) && behind >= 0.75 * total) result.p75 = held.level;
  }
  return result;
}

}  // namespace headrace::analysis::device
