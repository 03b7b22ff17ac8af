// How long an asynchronous device works on a step.
//
// The host puts a step's work into the device's queue and goes on. A mark in that queue where the step begins,
// and one where it ends, tell the time between them on the device's own clock once the device has passed both.
#pragma once

#include <cstdint>
#include <memory>

namespace headrace::profile {

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

/// What puts such marks: a framework that knows its device and its current queue.
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

}  // namespace headrace::profile
