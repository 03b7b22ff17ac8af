#include "own_compute.h"

#include <algorithm>

#include "fast_steps.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// The interpreter lock, as far as the verdict does not count it already.
double lock_wait_s(const profile::Profile& profile, const InterpreterLock& lock,
                   const GateThresholds& thresholds) {
  const double waited_s = profile.sink.compute_lock_wait_s.value_or(0);
  return waited_s < thresholds.core_wait_share * profile.sink.step_s ? lock.stretch_s
                                                                     : std::max(lock.stretch_s, waited_s);
}

/// A training step is slower beside others even without those waits: the data of one that computes is gone from the
/// caches each time, and one that sleeps wakes up later. Steps that met nobody are among the fastest. Work that differs
/// from step to step is not taken for it beyond what it waits: where that is a fifth of its compute, at most a fifth of
/// the rest is slowness (measured: 0.1 to 1.0 of that).
double slowed_s(const profile::SinkProfile& sink, double waited_s) {
  if (waited_s <= 0) return 0;
  const double fast_s = fast_compute_s(sink);
  if (fast_s <= 0) return 0;
  const double own_s = sink.compute_s - waited_s;
  return std::max(0.0, own_s - std::max(fast_s, own_s * ratio(own_s, sink.compute_s)));
}

}  // namespace

double core_wait_s(const profile::Profile& profile, const GateThresholds& thresholds) {
  const double waited_s = profile.sink.compute_core_wait_s.value_or(0);
  if (waited_s < thresholds.core_wait_share * profile.sink.step_s) return 0;
  const double own = profile.host.cpu_share.value_or(1);
  return waited_s * ratio(own, own + profile.host.foreign_cpu_share.value_or(0));
}

double own_compute_s(const profile::Profile& profile, const InterpreterLock& lock,
                     const GateThresholds& thresholds) {
  const profile::SinkProfile& sink = profile.sink;
  const double waited_s =
      std::min(sink.compute_s, lock_wait_s(profile, lock, thresholds) + core_wait_s(profile, thresholds));
  return sink.compute_s - waited_s - slowed_s(sink, waited_s);
}

}  // namespace headrace::analysis
