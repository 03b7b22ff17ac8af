// The training loop's compute without what the input's threads do to it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "headrace/analysis/read/interpreter_lock.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Whether the loop's thread hardly computes in its own step: it sleeps, or waits for a device.
bool sleeps(const profile::SinkProfile& sink) noexcept;

/// Seconds a step in which the loop's own thread waited for a core, as far as this run had taken them.
double core_wait_s(const profile::Profile& profile) noexcept;

/// Seconds a step: its compute without waits for a core or the lock, and without what sharing them slows it down.
double own_compute_s(const profile::Profile& profile, const InterpreterLock& lock);

/// The fastest steps, one in so many, are left out: what is said must not hang on one of them.
inline constexpr std::size_t kFastestOf = 100;
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

}  // namespace headrace::analysis
