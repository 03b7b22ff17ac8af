// Holders of a device's memory at its peak.
#pragma once

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

using HoldersColumns = ColumnList<
    Integer<"device">, Text<"where", "The innermost function outside of PyTorch, or \"backward\".">,
    Integer<"held_bytes", "Requested at this place and live at the peak.">,
    Number<"held_pct", "Of the peak.">, Integer<"recorded_bytes", "Of them, allocated in the recording.">,
    Integer<"blocks">, Text<"file">>;

/// One row per device and place, the largest first.
///
/// The place of an allocation is the innermost function of its stack that is Python and outside of PyTorch. A
/// stack without one is "backward" where it is autograd's, else the innermost function of PyTorch. Blocks
/// that are older than the recording count for the stack of the block; freed ones, whose stack is lost, for
/// "before the recording".
Table holders(const memory::Snapshot& snapshot);

}  // namespace headrace::analysis::device_memory
