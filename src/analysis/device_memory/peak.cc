#include "headrace/analysis/device_memory/peak.h"

#include <algorithm>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/marked_steps.h"
#include "analysis/device_memory/places.h"

namespace headrace::analysis::device_memory {
namespace {

std::int64_t live_without_block(const memory::Snapshot& snapshot, const DeviceState& device) {
  std::vector<std::int64_t> addresses;
  for (const memory::Segment* segment : device.segments) {
    for (const memory::Block& block : snapshot.blocks_of(*segment)) addresses.push_back(block.address);
  }
  std::sort(addresses.begin(), addresses.end());
  const memory::Events& events = snapshot.events;
  std::int64_t bytes = 0;
  for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
    if (events.action[row] != memory::Action::alloc || events.other_end[row] != memory::kNone) continue;
    if (!std::binary_search(addresses.begin(), addresses.end(), events.address[row]))
      bytes += events.size[row];
  }
  return bytes;
}

std::int64_t most_reserved(const memory::Snapshot& snapshot, const DeviceState& device) {
  std::int64_t level = 0;
  std::int64_t most = 0;
  for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
    level += reserved_by(snapshot.events, row);
    most = std::max(most, level);
  }
  return most;
}

}  // namespace

Table peak(const memory::Snapshot& snapshot) {
  const memory::Events& events = snapshot.events;
  Rows<PeakColumns> rows;
  Places places(snapshot);
  const MarkedSteps steps(snapshot);
  for (const DeviceState& device : devices_of(snapshot)) {
    const Peak peak = peak_of(snapshot, device);
    const OlderBlocks older = older_blocks(snapshot, device);
    const std::int64_t before = older.live_bytes + older.freed_bytes;
    std::int64_t alive = 0;
    for_live_at(events, device, peak, [&](std::uint32_t row) { alive += events.size[row]; });
    const bool has_peak = peak.row != memory::kNone;
    rows.add(device.number, before + peak.recorded_bytes, peak.recorded_bytes, before, alive,
             has_peak ? std::int64_t{peak.row - device.events.first} : -1,
             has_peak ? events.time_us[peak.row] * 1000 : -1,
             has_peak ? steps.at(device.number, events.time_us[peak.row]) : std::string_view(),
             has_peak ? std::string_view(places.label(places.of_stack(events.stack[peak.row])))
                      : std::string_view(),
             reserved_after(snapshot, device, peak.row), most_reserved(snapshot, device), device.events.count,
             older.frees, live_without_block(snapshot, device));
    const std::string about = "device " + std::to_string(device.number);
    if (device.events.count == 0)
      rows.note(about + " has no recorded events: torch.cuda.memory._record_memory_history() was not called");
    if (older.frees > 0)
      rows.note(about +
                ": blocks freed that are older than the recording, or than the oldest event it kept: " +
                std::to_string(older.frees));
  }
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
