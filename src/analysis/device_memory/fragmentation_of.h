// The reserved memory of a device, divided up.
#pragma once

#include "analysis/device_memory/device_state.h"

namespace headrace::analysis::device_memory {

/// Bytes, and counts of blocks. The columns of fragmentation.h say how to read them.
struct Reserved {
  std::int64_t reserved = 0;
  std::int64_t allocated = 0;
  std::int64_t active = 0;
  std::int64_t requested = 0;
  std::int64_t blocks_active = 0;
  std::int64_t inactive_blocks = 0;
  std::int64_t inactive = 0;
  std::int64_t largest_inactive = 0;
  std::int64_t whole_free = 0;
  std::int64_t rounding = 0;
  std::int64_t expandable = 0;
  std::int64_t private_pools = 0;
  std::int64_t private_inactive = 0;
};
Reserved fragmentation_of(const memory::Snapshot& snapshot, const DeviceState& device);

}  // namespace headrace::analysis::device_memory
