// Why a request for memory failed.
#pragma once

#include <cstdint>

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

struct OutOfMemoryOptions {
  /// Memory of a device; 0: unknown. A snapshot does not say it.
  std::int64_t device_bytes = 0;
};

using OutOfMemoryColumns = ColumnList<
    Integer<"device">, Integer<"event", "Event of the device, from 0.">, Integer<"time_ns">,
    Text<"step", "The step that it is in, if steps are marked.">, Integer<"requested_bytes">,
    Number<"device_free_bytes", "Not reserved by anybody; NaN: the file does not say.">,
    Integer<"reserved_bytes">, Integer<"inactive_bytes", "Reserved and free.">,
    Number<"largest_inactive_block_bytes", "NaN: the snapshot was taken later, after other events.">,
    Number<"others_bytes", "Held by other processes and by the driver; NaN: the device's size is unknown.">,
    Text<"verdict", "\"fragmentation\", \"too much\" or \"another process\".">, Text<"says">, Text<"cure">,
    Text<"where", "What asked.">>;

/// One row per event `oom`, by device and time.
///
/// fragmentation: the inactive bytes would have been enough. another process: what is neither reserved nor
/// free is more than the request and a CUDA context (1 GiB) together; needs the device's size. too much: all
/// else. State at the event is that of the snapshot less what the later events changed.
Table out_of_memory(const memory::Snapshot& snapshot, const OutOfMemoryOptions& options = {});

}  // namespace headrace::analysis::device_memory
