// What a training step takes when little disturbs it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The fastest step but one in so many.
inline constexpr std::size_t kFastestOf = 20;

/// The compute of that step among the recorded ones; 0 if there are fewer.
inline double fast_compute_s(const profile::SinkProfile& sink) {
  if (sink.sequence.size() < kFastestOf) return 0;
  std::vector<double> computes;
  for (const profile::StepSample& step : sink.sequence) computes.push_back(step.compute_s);
  const auto fast = computes.begin() + static_cast<std::ptrdiff_t>(computes.size() / kFastestOf);
  std::nth_element(computes.begin(), fast, computes.end());
  return *fast;
}

}  // namespace headrace::analysis
