// What recordings of both simulations have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "headrace/profile/latency.h"

namespace headrace::simulation {

inline constexpr std::size_t kMaxWindows = 128;

inline profile::Latency latency_of(std::vector<double> values) {
  profile::Latency latency;
  latency.count = values.size();
  if (values.empty()) return latency;
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  latency.mean_s = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  latency.p50_s = at(0.5);
  latency.p90_s = at(0.9);
  latency.p99_s = at(0.99);
  latency.max_s = values.back();
  return latency;
}

}  // namespace headrace::simulation
