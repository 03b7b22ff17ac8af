// Marks in the queue of an asynchronous device: around about twenty steps of a loop a second, whatever their length.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/metrics/sink_probe.h"

namespace headrace::profile {

/// How long an asynchronous device works on a step: the host puts a step's work into the device's queue and goes on. A
/// mark in that queue where the step begins, and one where it ends, give the time between them on the device's own
/// clock once the device has passed both.
///
/// Two marks in a device's queue; the first one is there when it is made. Used by the loop's thread. Neither
/// call waits for the device.
class DeviceSpan {
 public:
  static constexpr std::int64_t kNotYet = -1;  ///< the device has not passed the second mark
  static constexpr std::int64_t kNever = -2;   ///< it cannot tell

  virtual ~DeviceSpan() = default;
  /// Puts the second mark.
  virtual void end() noexcept = 0;
  /// Nanoseconds between them, kNotYet or kNever.
  virtual std::int64_t ns() noexcept = 0;
};

/// Writer of such marks: a framework, which has the device and its current queue.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  /// Puts the first mark; null where no device is in use.
  virtual std::unique_ptr<DeviceSpan> begin() noexcept = 0;

  /// The process's; null where none was installed.
  static DeviceClock* process() noexcept;
  /// Any thread. It must live as long as the process, or until null takes its place and no loop runs.
  static void install(DeviceClock* clock) noexcept;
};

/// One per loop, called by its thread around each step. Never throws; does nothing where no DeviceClock was
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
