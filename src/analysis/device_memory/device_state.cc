#include "analysis/device_memory/device_state.h"

#include <algorithm>
#include <map>

namespace headrace::analysis::device_memory {

using memory::Action;

std::vector<DeviceState> devices_of(const memory::Snapshot& snapshot) {
  std::map<std::int64_t, DeviceState> found;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (snapshot.devices[i].count > 0) found[static_cast<std::int64_t>(i)].events = snapshot.devices[i];
  }
  for (const memory::Segment& segment : snapshot.segments) found[segment.device].segments.push_back(&segment);
  std::vector<DeviceState> devices;
  for (auto& [number, device] : found) {
    device.number = number;
    devices.push_back(std::move(device));
  }
  return devices;
}

OlderBlocks older_blocks(const memory::Snapshot& snapshot, const DeviceState& device) {
  const memory::Events& events = snapshot.events;
  OlderBlocks older;
  std::vector<std::int64_t> recorded;  // addresses of live blocks
  for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
    if (events.other_end[row] != memory::kNone) continue;
    if (events.action[row] == Action::alloc) recorded.push_back(events.address[row]);
    if (events.action[row] != Action::free_completed) continue;
    ++older.frees;
    older.freed_bytes += events.size[row];
  }
  std::sort(recorded.begin(), recorded.end());
  for (const memory::Segment* segment : device.segments) {
    for (const memory::Block& block : snapshot.blocks_of(*segment)) {
      if (!block.active || std::binary_search(recorded.begin(), recorded.end(), block.address)) continue;
      older.live.push_back(&block);
      older.live_bytes += block.requested_bytes;
    }
  }
  return older;
}

Peak peak_of(const memory::Snapshot& snapshot, const DeviceState& device) {
  const memory::Events& events = snapshot.events;
  Peak peak;
  std::int64_t level = 0;
  for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
    if (events.action[row] == Action::free_completed) level -= events.size[row];
    if (events.action[row] != Action::alloc) continue;
    level += events.size[row];
    if (level > peak.recorded_bytes) peak = {level, row};
  }
  return peak;
}

std::int64_t reserved_by(const memory::Events& events, std::uint32_t row) noexcept {
  switch (events.action[row]) {
    case Action::segment_alloc:
    case Action::segment_map:
      return events.size[row];
    case Action::segment_free:
    case Action::segment_unmap:
      return -events.size[row];
    default:
      return 0;
  }
}

std::int64_t reserved_after(const memory::Snapshot& snapshot, const DeviceState& device, std::uint32_t row) {
  std::int64_t reserved = 0;
  for (const memory::Segment* segment : device.segments) reserved += segment->total_bytes;
  for (std::uint32_t later = row == memory::kNone ? device.events.first : row + 1; later < device.end();
       ++later)
    reserved -= reserved_by(snapshot.events, later);
  return reserved;
}

}  // namespace headrace::analysis::device_memory
