#include "headrace/analysis/device_memory/fragmentation.h"

#include <algorithm>

#include "analysis/device_memory/device_state.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device_memory {

Reserved fragmentation_of(const memory::Snapshot& snapshot, const DeviceState& device) {
  Reserved sum;
  for (const memory::Segment* segment : device.segments) {
    sum.reserved += segment->total_bytes;
    sum.allocated += segment->allocated_bytes;
    sum.active += segment->active_bytes;
    sum.requested += segment->requested_bytes;
    sum.rounding += segment->active_bytes - segment->requested_bytes;
    if (segment->expandable) sum.expandable += segment->total_bytes;
    if (segment->in_private_pool) sum.private_pools += segment->total_bytes;
    bool in_use = false;
    for (const memory::Block& block : snapshot.blocks_of(*segment)) {
      if (block.active) {
        in_use = true;
        sum.blocks_active += block.bytes;
        continue;
      }
      ++sum.inactive_blocks;
      sum.inactive += block.bytes;
      sum.largest_inactive = std::max(sum.largest_inactive, block.bytes);
      if (segment->in_private_pool) sum.private_inactive += block.bytes;
    }
    if (!in_use) sum.whole_free += segment->total_bytes;
  }
  return sum;
}

Table fragmentation(const memory::Snapshot& snapshot) {
  Rows<FragmentationColumns> rows;
  for (const DeviceState& device : devices_of(snapshot)) {
    const Reserved sum = fragmentation_of(snapshot, device);
    rows.add(device.number, device.segments.size(), sum.reserved, sum.allocated, sum.active, sum.requested,
             sum.blocks_active, sum.inactive_blocks, sum.inactive,
             device::percent(sum.inactive, sum.reserved), sum.largest_inactive, sum.whole_free,
             sum.inactive - sum.whole_free, sum.rounding, sum.expandable, sum.private_pools,
             sum.private_inactive);
  }
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
