// The queue of an asynchronous device in simulated time: the host puts a step's work in, and goes on.
#pragma once

#include <algorithm>

namespace headrace::analysis {

class DeviceQueue {
 public:
  /// `step_s`: how long the device works on a step; 0: the host does not run ahead of it.
  explicit DeviceQueue(double step_s) noexcept : step_s_(step_s) {}

  /// The host began a step at `began_s` and has put its work in at `now_s`: how long it must wait for room.
  double put(double began_s, double now_s) noexcept {
    free_s_ = std::max(free_s_, began_s) + step_s_;
    return step_s_ > 0 ? std::max(0.0, free_s_ - kStepsAhead * step_s_ - now_s) : 0;
  }

 private:
  /// How far the host runs ahead. CUDA's queue holds about 1,024 launches, one or two steps of a large model;
  /// the mean step does not depend on it.
  static constexpr double kStepsAhead = 2;

  double step_s_;
  double free_s_ = 0;
};

}  // namespace headrace::analysis
