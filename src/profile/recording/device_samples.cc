#include "headrace/profile/device_samples.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "headrace/metrics/clock.h"

namespace headrace::profile {
namespace {

using metrics::Clock;

/// Between two marked steps, on average.
constexpr double kSpacingNs = 50e6;

std::atomic<DeviceClock*> installed = nullptr;

}  // namespace

DeviceClock* DeviceClock::process() noexcept { return installed.load(std::memory_order_acquire); }

void DeviceClock::install(DeviceClock* clock) noexcept { installed.store(clock, std::memory_order_release); }

// Counted in steps, not in time, which would mark slow steps more often than fast ones. Half to one and a half of
// the spacing, evenly spread: a fixed one would hit every tenth step, say, or none.
void DeviceSamples::plan_next(std::int64_t now) noexcept {
  constexpr double kGoldenRatio = 0.6180339887498949;
  double whole = 0;
  const double spacing = 0.5 + std::modf(static_cast<double>(++samples_) * kGoldenRatio, &whole);
  const double step_ns = static_cast<double>(now - first_ns_) / static_cast<double>(steps_);
  next_ = steps_ + static_cast<std::uint64_t>(std::max(1.0, spacing * kSpacingNs / std::max(step_ns, 1e3)));
}

void DeviceSamples::sample(metrics::SinkProbe& probe, std::int64_t now) noexcept {
  if (first_ns_ == 0) {
    // The first step of a loop sets up more than it computes.
    first_ns_ = now;
    next_ = 2;
    return;
  }
  plan_next(now);
  DeviceClock* const clock = DeviceClock::process();
  if (clock == nullptr) return;
  if (span_ != nullptr) {
    const std::int64_t ns = span_->ns();
    if (ns == DeviceSpan::kNotYet) return;
    if (ns >= 0) probe.tell_device(ns, host_ns_);
  }
  span_ = clock->begin();
  open_ = span_ != nullptr;
  began_ns_ = Clock::now_ns();
  probe.exclude(began_ns_ - now);
  excluded_ns_ = probe.excluded_ns();
}

void DeviceSamples::close(metrics::SinkProbe& probe) noexcept {
  open_ = false;
  if (probe.excluded_ns() != excluded_ns_) {
    // Another loop ran within this step, on the same device.
    span_.reset();
    return;
  }
  const std::int64_t now = Clock::now_ns();
  host_ns_ = now - began_ns_;
  span_->end();
  probe.exclude(Clock::now_ns() - now);
}

}  // namespace headrace::profile
