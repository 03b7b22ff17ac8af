// Which steps of a loop are marked in the device's queue: about twenty a second, whatever their length.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/metrics/sink_probe.h"
#include "headrace/profile/device_span.h"

namespace headrace::profile {

/// Of one loop, called by its thread around each step. Never throws; does nothing where no DeviceClock was
/// installed. A mark takes some microseconds, which are left out of the step.
class DeviceSamples {
 public:
  void step_begins(metrics::SinkProbe& probe, std::int64_t now) noexcept {
    if (++steps_ >= next_) sample(probe, now);
  }
  void step_ends(metrics::SinkProbe& probe) noexcept {
    if (open_) close(probe);
  }

 private:
  void sample(metrics::SinkProbe& probe, std::int64_t now) noexcept;
  void close(metrics::SinkProbe& probe) noexcept;
  void plan_next(std::int64_t now) noexcept;

  std::unique_ptr<DeviceSpan> span_;  ///< one at a time
  bool open_ = false;                 ///< its second mark is still to come
  std::uint64_t steps_ = 0;
  std::uint64_t next_ = 0;  ///< the step that is marked next
  std::uint64_t samples_ = 0;
  std::int64_t first_ns_ = 0;     ///< when the first step began
  std::int64_t began_ns_ = 0;     ///< the marked step, after its mark
  std::int64_t host_ns_ = 0;      ///< how long the host was in it
  std::int64_t excluded_ns_ = 0;  ///< of it, when it began
};

}  // namespace headrace::profile
