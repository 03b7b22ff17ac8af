// What a training step takes when little disturbs it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The fastest steps, one in so many, are left out: what is said must not hang on one of them.
inline constexpr std::size_t kFastestOf = 100;
/// Fewer steps say nothing.
inline constexpr std::size_t kFewestSteps = 20;

/// The compute of the fastest step after those, among the recorded ones; 0 if they are too few.
inline double fast_compute_s(const profile::SinkProfile& sink) {
  if (sink.sequence.size() < kFewestSteps) return 0;
  std::vector<double> computes;
  for (const profile::StepSample& step : sink.sequence) computes.push_back(step.compute_s);
  const auto fast = computes.begin() + static_cast<std::ptrdiff_t>(computes.size() / kFastestOf);
  std::nth_element(computes.begin(), fast, computes.end());
  return *fast;
}

}  // namespace headrace::analysis
