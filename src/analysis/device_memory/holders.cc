#include "headrace/analysis/device_memory/holders.h"

#include <algorithm>
#include <tuple>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/places.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device_memory {
std::vector<HeldAtPeak> held_at_peak(const memory::Snapshot& snapshot, const DeviceState& device,
                                     Places& places) {
  const memory::Events& events = snapshot.events;
  std::vector<HeldAtPeak> held;
  const auto add = [&](std::uint32_t place, std::int64_t bytes, bool recorded) {
    while (held.size() <= place) held.push_back({static_cast<std::uint32_t>(held.size()), 0, 0, 0});
    held[place].bytes += bytes;
    held[place].recorded_bytes += recorded ? bytes : 0;
    ++held[place].blocks;
  };
  const Peak peak = peak_of(snapshot, device);
  for_live_at(events, device, peak,
              [&](std::uint32_t row) { add(places.of_stack(events.stack[row]), events.size[row], true); });
  for (const memory::Block* block : older_blocks(snapshot, device).live)
    add(places.of_stack(block->stack), block->requested_bytes, false);
  const std::uint32_t first = peak.row == memory::kNone ? device.events.first : peak.row + 1;
  for (std::uint32_t row = first; row < device.end(); ++row) {
    const bool older =
        events.action[row] == memory::Action::free_completed && events.other_end[row] == memory::kNone;
    if (older) add(places.named(kBeforeRecording), events.size[row], false);
  }
  std::erase_if(held, [](const HeldAtPeak& each) { return each.blocks == 0; });
  std::sort(held.begin(), held.end(), [&](const HeldAtPeak& a, const HeldAtPeak& b) {
    return std::tuple(-a.bytes, std::string_view(places.label(a.place))) <
           std::tuple(-b.bytes, std::string_view(places.label(b.place)));
  });
  return held;
}

Table holders(const memory::Snapshot& snapshot) {
  Rows<HoldersColumns> rows;
  Places places(snapshot);
  for (const DeviceState& device : devices_of(snapshot)) {
    const std::vector<HeldAtPeak> held = held_at_peak(snapshot, device, places);
    std::int64_t whole = 0;
    for (const HeldAtPeak& each : held) whole += each.bytes;
    for (const HeldAtPeak& each : held)
      rows.add(device.number, places.label(each.place), each.bytes, device::percent(each.bytes, whole),
               each.recorded_bytes, each.blocks, places.file(each.place));
  }
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
