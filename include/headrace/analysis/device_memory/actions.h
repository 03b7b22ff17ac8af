// The recorded events of the allocator, by kind.
#pragma once

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

using ActionsColumns = ColumnList<Integer<"device">, Text<"action", "As the file writes it.">,
                                  Integer<"count">, Integer<"sum_bytes">>;

/// One row per device and kind of event.
Table actions(const memory::Snapshot& snapshot);

}  // namespace headrace::analysis::device_memory
