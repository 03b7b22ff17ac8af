#include "headrace/analysis/cluster/slowest_chance.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headrace::analysis::cluster {
namespace {

/// Verdicts in a week: three of each 24 seconds.
constexpr double kVerdictsAWeek = 7.0 * 24 * 3600 / 24 * 3;
/// Beyond, a probability is no longer a double.
constexpr double kMaxZ = 37;

/// The z that a normal variable exceeds with this probability.
double z_of(double probability) {
  double low = 0, high = kMaxZ;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const bool is_above = 0.5 * std::erfc(middle / std::numbers::sqrt2) > probability;
    (is_above ? low : high) = middle;
  }
  return low;
}

}  // namespace

double slowest_z(std::size_t slowest, std::size_t steps, std::size_t ranks) {
  if (ranks < 2 || steps == 0) return 0;
  const auto m = static_cast<double>(steps);
  const double p = 1 / static_cast<double>(ranks);
  double tail = 0;
  for (std::size_t k = std::min(slowest, steps); k <= steps; ++k) {
    const auto n = static_cast<double>(k);
    tail += std::exp(std::lgamma(m + 1) - std::lgamma(n + 1) - std::lgamma(m - n + 1) + n * std::log(p) +
                     (m - n) * std::log1p(-p));
  }
  return z_of(std::min(tail, 1.0));
}

double chronic_z(std::size_t ranks) {
  return z_of(1 / (kVerdictsAWeek * static_cast<double>(std::max<std::size_t>(ranks, 2))));
}

}  // namespace headrace::analysis::cluster
