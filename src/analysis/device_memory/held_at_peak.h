// Who holds what at a device's peak.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/places.h"

namespace headrace::analysis::device_memory {

/// The place of freed blocks whose allocation, and so whose stack, was not recorded.
inline constexpr std::string_view kBeforeRecording = "before the recording";

struct HeldAtPeak {
  std::uint32_t place = 0;
  std::int64_t bytes = 0;
  std::int64_t recorded_bytes = 0;
  std::int64_t blocks = 0;
};

/// By place, the largest first; places that hold nothing are left out.
std::vector<HeldAtPeak> held_at_peak(const memory::Snapshot& snapshot, const DeviceState& device,
                                     Places& places);

}  // namespace headrace::analysis::device_memory
