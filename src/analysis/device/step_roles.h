// The roles of a step breakdown, and when each was active.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

enum class StepRole : std::uint8_t {
  kernel,
  memcpy,
  memset,
  communication,
  runtime,
  data_loader,
  cpu,
  other
};
inline constexpr std::array kStepRoleNames = {"kernel",  "memcpy",      "memset", "communication",
                                              "runtime", "data_loader", "cpu",    "other"};
inline constexpr std::size_t kStepRoles = kStepRoleNames.size();

/// When each role was active, whatever else was; `other` is empty.
using RoleTimes = std::array<Intervals, kStepRoles>;
RoleTimes role_times(const trace::Trace& trace);

/// Steps as the breakdown counts them: they reach until their work on the device ends.
struct CountedStep {
  std::int64_t number = 0;
  Interval time;
};
std::vector<CountedStep> counted_steps(const trace::Trace& trace);

}  // namespace headrace::analysis::device
