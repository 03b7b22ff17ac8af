#include "headrace/analysis/read/exposed_wait.h"

#include <algorithm>

#include "device_lag.h"

namespace headrace::analysis {
namespace {

/// The share of the waits that is exposed.
double exposed_part(const profile::LoopTotals& since, const profile::LoopTotals& now) {
  if (now.steps <= since.steps || now.device_steps <= since.device_steps) return 1;
  const auto steps = static_cast<double>(now.steps - since.steps);
  const auto marked = static_cast<double>(now.device_steps - since.device_steps);
  const double wait_s = (now.wait_s - since.wait_s) / steps;
  if (wait_s <= 0) return 1;
  profile::SinkProfile sink;
  sink.compute_s = (now.compute_s - since.compute_s) / steps;
  sink.step_s = sink.compute_s + wait_s;
  sink.device_steps = now.device_steps - since.device_steps;
  sink.device_span_s = (now.device_s - since.device_s) / marked;
  sink.device_host_s = (now.device_host_s - since.device_host_s) / marked;
  return 1 - device_lag_s(sink) / wait_s;
}

ExposedWait share_of(double wait_s, double over_s) {
  if (over_s <= 0) return {};
  return {std::clamp(wait_s / over_s, 0.0, 1.0), over_s};
}

}  // namespace

ExposedWait exposed_wait(const profile::LoopTotals& since, const profile::LoopTotals& now) {
  return share_of((now.wait_s - since.wait_s) * exposed_part(since, now), now.at_s - since.at_s);
}

ExposedWait exposed_wait(const profile::LoopTotals& now) {
  return share_of(now.recent_wait_s * exposed_part({}, now), now.recent_s);
}

}  // namespace headrace::analysis
