// Parts of a device's reserved memory when the snapshot is taken.
#pragma once

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

using FragmentationColumns = ColumnList<
    Integer<"device">, Integer<"segments">,
    Integer<"reserved_bytes", "What the allocator has from the driver.">,
    Integer<"allocated_bytes", "Blocks in use, rounded.">,
    Integer<"active_bytes", "And those that were freed and wait for another stream.">,
    Integer<"requested_bytes", "As the program asked for.">,
    Integer<"blocks_active_bytes", "Sum of the blocks.">, Integer<"inactive_blocks">,
    Integer<"inactive_bytes", "Reserved and free.">,
    Number<"inactive_pct", "Of the reserved; high: fragmented, or a peak has passed.">,
    Integer<"largest_inactive_block_bytes", "A larger request needs memory from the driver.">,
    Integer<"whole_free_segments_bytes", "Segments without a block in use: empty_cache() returns them.">,
    Integer<"inactive_split_bytes", "Free between blocks in use: cannot be returned.">,
    Integer<"rounding_bytes", "Blocks are larger than what was asked for.">,
    Integer<"expandable_bytes", "Reserved in expandable segments.">,
    Integer<"private_pool_bytes", "Reserved in private pools, such as those of CUDA graphs.">,
    Integer<"private_inactive_bytes", "Free in them: other allocations cannot use it.">>;

/// One row per device, by number.
Table fragmentation(const memory::Snapshot& snapshot);

}  // namespace headrace::analysis::device_memory
