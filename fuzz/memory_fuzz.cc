// Bytes as a memory snapshot, and every table of it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "demand.h"
#include "headrace/analysis/device_memory/actions.h"
#include "headrace/analysis/device_memory/fragmentation.h"
#include "headrace/analysis/device_memory/growth.h"
#include "headrace/analysis/device_memory/holders.h"
#include "headrace/analysis/device_memory/out_of_memory.h"
#include "headrace/analysis/device_memory/over_time.h"
#include "headrace/analysis/device_memory/peak.h"
#include "headrace/memory/snapshot.h"
#include "headrace/profile/errors.h"

namespace {

using namespace headrace;
namespace tables = analysis::device_memory;

void check_rows(const memory::Snapshot& snapshot) {
  const memory::Events& events = snapshot.events;
  for (const memory::DeviceEvents& device : snapshot.devices)
    demand(std::size_t{device.first} + device.count <= events.count(), "events exist");
  for (std::uint32_t row = 0; row < events.count(); ++row) {
    demand(events.size[row] >= 0, "sizes are not negative");
    const std::uint32_t end = events.other_end[row];
    demand(end == memory::kNone || end < events.count(), "the other end exists");
    demand(events.action[row] != memory::Action::alloc || end == memory::kNone || end > row,
           "ends come later");
    for (const std::uint32_t frame : snapshot.stack(events.stack[row]))
      demand(frame < snapshot.frames.size(), "frames exist");
  }
  for (const memory::Segment& segment : snapshot.segments)
    demand(std::size_t{segment.first_block} + segment.blocks <= snapshot.blocks.size(), "blocks exist");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trace::MemoryBytes bytes(std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    const memory::Snapshot snapshot = memory::read_snapshot(bytes, "snapshot");
    check_rows(snapshot);
    const analysis::Table peak = tables::peak(snapshot);
    const analysis::Table reserved = tables::fragmentation(snapshot);
    demand(peak.rows() == reserved.rows(), "each device has a row");
    std::int64_t held = 0;
    const analysis::Table holders = tables::holders(snapshot);
    for (const std::int64_t each : holders.integers("held_bytes")) held += each;
    for (std::size_t i = 0; i < peak.rows(); ++i) {
      demand(peak.integers("peak_requested_bytes")[i] >= peak.integers("peak_recorded_bytes")[i],
             "the peak is at least what was recorded");
    }
    demand(held >= 0, "nobody holds less than nothing");
    tables::growth(snapshot);
    tables::over_time(snapshot, {5, 2});
    tables::actions(snapshot);
    tables::out_of_memory(snapshot, {std::int64_t{80} << 30});
  } catch (const FormatError&) {
  }
  return 0;
}
