// A device's memory over its events, by the places that hold most of it at the peak.
#pragma once

#include <cstddef>

#include "headrace/analysis/rows.h"
#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

struct OverTimeOptions {
  /// Moments of each device: it has so many parts of equal numbers of events, and each shows its highest
  /// level.
  std::size_t moments = 240;
  /// Places with rows of their own.
  std::size_t places = 7;
};

using OverTimeColumns =
    ColumnList<Integer<"device">, Integer<"event", "Event of the device, from 0.">, Integer<"time_ns">,
               Text<"where", "As in holders(); \"others\": all places with less.">,
               Integer<"held_bytes", "Requested there and live behind the event.">>;

/// Rows by device, event and place; each moment has a row for each of the device's places, in one order.
/// Devices without recorded events have none.
Table over_time(const memory::Snapshot& snapshot, const OverTimeOptions& options = {});

}  // namespace headrace::analysis::device_memory
