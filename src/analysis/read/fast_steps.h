// What a training step takes when little disturbs it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The fastest steps, one in so many, are left out: what is said must not hang on one of them.
inline constexpr std::size_t kFastestOf = 100;
/// The same of the steps that used least CPU time: a clock of the thread's own has few outliers.
inline constexpr std::size_t kLightestOf = 250;
/// Fewer steps say nothing.
inline constexpr std::size_t kFewestSteps = 20;

/// The least of `values` after the first of every `of`; 0 if they are too few.
inline double least_but_few(std::vector<double> values, std::size_t of) {
  if (values.size() < kFewestSteps) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / of);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The compute of the fastest step after those, among the recorded ones; 0 if they are too few.
inline double fast_compute_s(const profile::SinkProfile& sink) {
  std::vector<double> computes;
  for (const profile::StepSample& step : sink.sequence) computes.push_back(step.compute_s);
  return least_but_few(std::move(computes), kFastestOf);
}

/// The CPU time of the step that used least of it, after those; 0 if it was read in too few.
inline double light_cpu_s(const profile::SinkProfile& sink) {
  std::vector<double> times;
  for (const profile::StepSample& step : sink.sequence) {
    if (step.cpu_s) times.push_back(*step.cpu_s);
  }
  return least_but_few(std::move(times), kLightestOf);
}

}  // namespace headrace::analysis
