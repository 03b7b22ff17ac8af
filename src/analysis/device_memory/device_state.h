// Data of the memory tables about one device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/device_memory/places.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

/// A device with its part of a snapshot, which must outlive it.
struct DeviceState {
  std::int64_t number = 0;
  memory::DeviceEvents events;
  std::vector<const memory::Segment*> segments;

  std::uint32_t end() const noexcept { return events.first + events.count; }
};

/// Devices that have segments or events, by number.
std::vector<DeviceState> devices_of(const memory::Snapshot& snapshot);

/// Blocks that are older than the recording.
struct OlderBlocks {
  /// Live when the snapshot was taken.
  std::vector<const memory::Block*> live;
  std::int64_t live_bytes = 0;
  /// Freed in the recording.
  std::int64_t freed_bytes = 0;
  std::int64_t frees = 0;
};
OlderBlocks older_blocks(const memory::Snapshot& snapshot, const DeviceState& device);

/// The highest level of requested bytes.
struct Peak {
  /// Above the level at the beginning of the recording; 0 if no event is above.
  std::int64_t recorded_bytes = 0;
  std::uint32_t row = memory::kNone;
};
Peak peak_of(const memory::Snapshot& snapshot, const DeviceState& device);

/// Calls `use(row)` for each recorded allocation that is live at the peak.
template <class Use>
void for_live_at(const memory::Events& events, const DeviceState& device, const Peak& peak, Use&& use) {
  if (peak.row == memory::kNone) return;
  for (std::uint32_t row = device.events.first; row <= peak.row; ++row) {
    if (events.action[row] != memory::Action::alloc) continue;
    const std::uint32_t end = events.other_end[row];
    if (end == memory::kNone || end > peak.row) use(row);
  }
}

/// Bytes that an event reserves from the driver, negative where it returns them.
std::int64_t reserved_by(const memory::Events& events, std::uint32_t row) noexcept;

/// Reserved right after an event (kNone: before the first): what the segments have, less what later events
/// changed.
std::int64_t reserved_after(const memory::Snapshot& snapshot, const DeviceState& device, std::uint32_t row);

// --- the reserved memory of a device, divided up ---

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

// --- who holds what at its peak ---

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
