// When a device held most memory, and what was there before the recording.
#pragma once

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

using PeakColumns = ColumnList<
    Integer<"device">,
    Integer<"peak_requested_bytes", "Most bytes at once that the program had asked for, without rounding.">,
    Integer<"peak_recorded_bytes", "Of them, by the recorded events alone.">,
    Integer<"requested_before_recording_bytes", "Live when the recording begins, or its oldest kept event.">,
    Integer<"alive_at_peak_recorded_bytes", "Allocated in the recording and live at the peak.">,
    Integer<"peak_event",
            "Event of the device that makes the peak, from 0; -1: no event, or none above the start.">,
    Integer<"time_ns", "Unix time of the peak; -1: none.">,
    Text<"step", "The step that the peak is in, if steps are marked.">,
    Text<"where", "What asked for the last bytes.">,
    Integer<"reserved_bytes", "Reserved from the driver at the peak.">,
    Integer<"segments_recorded_peak_bytes", "Most that the recorded segments added.">, Integer<"events">,
    Integer<"frees_of_older_blocks", "Frees of blocks whose allocation is not in the recording.">,
    Integer<"live_in_trace_without_block_bytes",
            "Live by the events, but in no block: 0 unless the snapshot is inconsistent.">>;

/// One row per device, by number. All bytes are requested ones: events do not say what they are rounded up
/// to.
///
/// Older blocks are those that are live at the end and were not allocated in the recording, and those freed
/// in it without an allocation. Their sum is what was live before.
Table peak(const memory::Snapshot& snapshot);

}  // namespace headrace::analysis::device_memory
