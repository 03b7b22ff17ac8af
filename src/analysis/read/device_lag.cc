#include "device_lag.h"

#include <algorithm>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/words.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Fewer marked steps tell no mean.
constexpr std::uint64_t kFewestMarked = 5;
/// Every device ends a step a little after its host. Up to this share of the compute, that is not a lag.
constexpr double kEndsLate = 0.02;

bool is_known(const profile::SinkProfile& sink) {
  return sink.device_span_s && sink.device_host_s && sink.device_steps >= kFewestMarked;
}

}  // namespace

bool works_on_device(const profile::SinkProfile& sink) noexcept {
  return is_known(sink) && *sink.device_span_s >= kMostOf * *sink.device_host_s;
}

double device_lag_s(const profile::SinkProfile& sink) noexcept {
  if (!is_known(sink)) return 0;
  // The host's time of the marked steps alone is noisy if it waits for room in the device's queue now and then.
  const double lag_s = *sink.device_span_s - std::max(*sink.device_host_s, sink.compute_s);
  if (lag_s <= kEndsLate * sink.compute_s) return 0;
  return std::clamp(lag_s, 0.0, std::max(0.0, sink.step_s - sink.compute_s));
}

double device_behind_s(const profile::SinkProfile& sink) noexcept {
  return device_lag_s(sink) > 0 ? sink.device_span_s.value_or(0) : 0;
}

std::optional<profile::Profile> seen_by_device(const profile::Profile& profile) {
  const double lag_s = device_lag_s(profile.sink);
  if (lag_s <= 0) return std::nullopt;
  profile::Profile seen = profile;
  profile::SinkProfile& sink = seen.sink;
  const double kept = 1 - ratio(lag_s, sink.step_s - sink.compute_s);
  sink.compute_s += lag_s;
  if (sink.quiet_compute_s) *sink.quiet_compute_s += lag_s;
  sink.wait_share *= kept;
  sink.starved_share *= kept;
  sink.handoff_floor_s *= kept;
  sink.worker_start_wait_s *= kept;
  for (profile::StepSample& step : sink.sequence) {
    const double moved_s = (1 - kept) * step.wait_s;
    step.wait_s -= moved_s;
    step.compute_s += moved_s;
  }
  for (profile::Window& window : seen.windows) {
    const double moved_s = (1 - kept) * window.wait_s;
    window.wait_s -= moved_s;
    window.starved_s *= kept;
    window.compute_s += moved_s;
  }
  for (profile::LedgerRow& row : seen.stall_ledger) row.seconds *= kept;
  return seen;
}

}  // namespace headrace::analysis
