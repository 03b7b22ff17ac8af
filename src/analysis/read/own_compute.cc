#include "own_compute.h"

#include <algorithm>

#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/demand.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Share of the other cores that the input takes.
double busy_share(const profile::Profile& profile) {
  const int others = profile.host.cores - 1;
  return others > 0 ? std::min(1.0, ratio(input_cpu_s(profile), others * profile.sink.step_s)) : 0;
}

}  // namespace

bool sleeps(const profile::SinkProfile& sink) noexcept {
  return sink.compute_cpu_s && *sink.compute_cpu_s < kHardly * sink.compute_s;
}

double core_wait_s(const profile::Profile& profile) noexcept {
  const double own = profile.host.cpu_share.value_or(1);
  return profile.sink.compute_core_wait_s.value_or(0) *
         ratio(own, own + profile.host.foreign_cpu_share.value_or(0));
}

double own_compute_s(const profile::Profile& profile, const InterpreterLock& lock) {
  const profile::SinkProfile& sink = profile.sink;
  const double lock_wait_s = std::max(lock.stretch_s, sink.compute_lock_wait_s.value_or(0));
  const double own_s = sink.compute_s - std::min(sink.compute_s, lock_wait_s + core_wait_s(profile));
  const double fast_s = fast_compute_s(sink);
  if (fast_s <= 0) return own_s;
  // A step that computes meets others that always compute each time; one that sleeps meets them now and then, but for
  // the lock where it usually waits for it.
  const double slower = sleeps(sink) ? 1 : slowdown(busy_share(profile));
  const bool always_met = !sleeps(sink) || lock_wait_s >= kHardly * sink.compute_s;
  const double usual_s = always_met ? std::min(fast_s, own_s / slower) : fast_s;
  // Single steps may be faster because their work varies: the rest is slower by the share of the waits at most.
  return std::max(usual_s, own_s * std::min(ratio(own_s, sink.compute_s), 1 / slower));
}

}  // namespace headrace::analysis
