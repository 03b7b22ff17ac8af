// Why a device did not compute: how much of it is the input's fault.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/device/intervals.h"
#include "headrace/analysis/table.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct DeviceIdleOptions {
  /// A gap that is shorter, before work that was launched in time, is what the device needs to get from one
  /// to the next.
  std::int64_t consecutive_kernel_delay_ns = 30'000;
};

struct DeviceIdle {
  /// One row per step that is not cut off; without steps one row with `step` -1 for all of the device's work:
  ///
  ///     rank step window_s idle_s input_s launch_s communication_s copy_s kernel_gap_s unknown_s
  ///
  /// A step's window runs from the end of the step before to the end of its own last work (the first's from
  /// its start on the host). `idle_s` is the time in it in which nothing computed. Each moment of that is in
  /// one column:
  ///
  ///     communication  a collective ran, and nothing computed behind it
  ///     copy           a copy or a fill ran, and nothing else
  ///     input          nothing ran, the next work had not been launched, and the loop waited for its batch
  ///     launch         nothing ran, the next work had not been launched, and the host did something else
  ///     kernel_gap     nothing ran, the next work had been launched, and it began within a moment
  ///     unknown        nothing ran, the next work had been launched long before (it waits for something), or
  ///                    its launch is not in the file and the loop did not wait
  ///
  /// To the nanosecond the six sum to `idle_s`.
  Table steps;
  /// The sums of all rows, the largest first: rank cause idle_s idle_pct. `cause` is "input", "launch",
  /// "communication", "copy", "kernel_gap" or "unknown".
  Table total;
};

/// `waits` are the loop's waits for its next batch (GetNext) on the clock of the file, in any order: what
/// Headrace recorded of the run, or `loader_waits(trace)`. How to read it: a large share of input means that
/// a faster input pipeline makes the device compute more; a large share of launch, that the host's own code
/// holds it up.
DeviceIdle device_idle(const trace::Trace& trace, std::span<const Interval> waits,
                       const DeviceIdleOptions& options = {});

}  // namespace headrace::analysis::device
