#include "own_compute.h"

#include <algorithm>

#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/demand.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// The lightest steps, one in so many, are left out (`kFastestOf`): a thread's clock has few outliers.
constexpr std::size_t kLightestOf = 250;

/// The CPU time of the step that used least of it, after those; 0 if it was read in too few.
double light_cpu_s(const profile::SinkProfile& sink) {
  std::vector<double> times;
  for (const profile::StepSample& step : sink.sequence) {
    if (step.cpu_s) times.push_back(*step.cpu_s);
  }
  return least_but_few(std::move(times), kLightestOf);
}

/// CPU time / compute, below which a step sleeps.
constexpr double kSleeps = 0.1;
/// Ratio from which a step does little else.
constexpr double kComputes = 0.5;
/// Upper bound of a step's slowdown by contention, per share of the waits in its compute; and at most. More of
/// it is other work (measured: up to 4 times the share of the waits).
constexpr double kSlowPerWait = 4;
constexpr double kMaxSlow = 0.5;
/// A step that sleeps wakes up late, beyond what it is seen to wait. Measured in 25 draws: the fastest hundredth of
/// the steps is within 2 % of the ceiling, and no further below the mean than so many waits.
constexpr double kWakesLate = 1.5;
/// The fastest step waited, too, if the usual one waits for the lock for the first part of its compute, and takes less
/// without all its waits than the fastest, by more than the second part of them. (Waits are only sampled: in 36 draws, the
/// step without them was 18 % below to 14 % above the ceiling. Of those for a core, a thread that has just woken up is one.)
constexpr double kMeetsLock = 0.1;
constexpr double kAlwaysMet = 0.55;
/// CPU work beside that of all other cores / alone, at most (measured: 1.00 to 1.20, docs/benchmarks.md).
constexpr double kMaxContention = 1.15;

/// Share of the other cores that the input takes.
double busy_share(const profile::Profile& profile) {
  const int others = profile.host.cores - 1;
  return others > 0 ? std::min(1.0, ratio(input_cpu_s(profile), others * profile.sink.step_s)) : 0;
}

/// Least time of the step alone, however fast single steps were: their work may vary.
double least_s(const profile::Profile& profile, double waited_s) {
  const profile::SinkProfile& sink = profile.sink;
  if (sleeps(sink)) return sink.compute_s - kWakesLate * waited_s;
  const double own_s = sink.compute_s - waited_s;
  const double beside = 1 + (kMaxContention - 1) * busy_share(profile);
  // At most a fifth of the rest is slowness if the waits are a fifth of the compute (measured: 0.1 to 1.7 of that).
  return own_s * std::min(ratio(own_s, sink.compute_s), 1 / beside);
}

}  // namespace

bool sleeps(const profile::SinkProfile& sink) noexcept {
  return sink.compute_cpu_s && *sink.compute_cpu_s < kSleeps * sink.compute_s;
}

double core_wait_s(const profile::Profile& profile) noexcept {
  const double own = profile.host.cpu_share.value_or(1);
  return profile.sink.compute_core_wait_s.value_or(0) *
         ratio(own, own + profile.host.foreign_cpu_share.value_or(0));
}

double own_compute_s(const profile::Profile& profile, const InterpreterLock& lock) {
  const profile::SinkProfile& sink = profile.sink;
  const double lock_wait_s = std::max(lock.stretch_s, sink.compute_lock_wait_s.value_or(0));
  const double waited_s = std::min(sink.compute_s, lock_wait_s + core_wait_s(profile));
  const double own_s = sink.compute_s - waited_s;
  const double fast_s = fast_compute_s(sink);
  if (fast_s <= 0) return own_s;
  // A step that computes meets others that always compute each time; one that sleeps now and then does not.
  double usual_s = std::min(fast_s, own_s / slowdown(busy_share(profile)));
  if (sleeps(sink)) {
    const bool always_met =
        lock_wait_s >= kMeetsLock * sink.compute_s && fast_s - own_s > kAlwaysMet * waited_s;
    usual_s = always_met ? own_s : fast_s;
  }
  const double alone_s = std::max(usual_s, least_s(profile, waited_s));
  const double cpu_s = sink.compute_cpu_s.value_or(0);
  const double light_s = light_cpu_s(sink);
  if (light_s <= 0 || cpu_s < kComputes * own_s) return alone_s;
  // Each time that its thread comes back to a core, a step takes CPU time of its own for it (docs/benchmarks.md): the step
  // that was least disturbed tells what it takes without.
  const double slow = std::min(kMaxSlow, kSlowPerWait * ratio(waited_s, sink.compute_s));
  return std::min(alone_s, std::max(own_s - cpu_s + light_s, (1 - slow) * own_s));
}

}  // namespace headrace::analysis
