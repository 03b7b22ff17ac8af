// The process ids that msprof makes up for rows of the timeline.
#pragma once

#include <cstdint>

namespace headrace::trace::ascend {

/// The real process, the place of the row in the view, the device.
constexpr std::int64_t made_up_pid(std::int64_t pid, std::int64_t place, std::int64_t device) noexcept {
  return (pid & ((std::int64_t{1} << 40) - 1)) << 10 | place << 5 | (device & 31);
}

}  // namespace headrace::trace::ascend
