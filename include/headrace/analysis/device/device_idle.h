// Why a device computed nothing, and when the loop waited for its next batch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Ranges of the host that are waits for a batch: one entry per name of the trace.
///
/// Known by their names: what PyTorch puts around a loader's `__next__`
/// ("enumerate(DataLoader)#....__next__"), tf.data's `IteratorGetNextOp::DoCompute` and
/// `IteratorGetNextAsOptionalOp::DoCompute`, Python functions called `__next__` (JAX's tracer). Where a trace
/// has none of them and shows what works (a device, or XLA on the host): of the ranges directly within the
/// steps or beside them that start no work, that take a twentieth of them or more, and whose name speaks of
/// data ("next_batch", "load"), the longest.
std::vector<bool> loader_wait_names(const trace::Trace& trace);

/// The name of those that take most time, empty if there is none.
std::string longest_loader_wait(const trace::Trace& trace);

/// A range's name as people read it: "$train.py:12 __next__", as JAX writes a Python function, is "__next__
/// (train.py:12)".
std::string shown_range(std::string_view name);

/// Their times, on the clock of the file. Empty if the loader is none of these: then the waits have to come
/// from Headrace's own record of the run.
Intervals loader_waits(const trace::Trace& trace);

/// The time that counts as the one step of a trace that marks none: from the first wait for the input, or the
/// first launch, to the last end of work. Nothing if there is neither.
std::optional<Interval> unmarked_step(const trace::Trace& trace);

struct DeviceIdleOptions {
  /// A gap that is shorter, before work that was launched in time, is what the device needs to get from one
  /// to the next.
  std::int64_t consecutive_kernel_delay_ns = 30'000;
};

using DeviceIdleColumns =
    ColumnList<Integer<"rank">, Integer<"step", "-1: all of the work; the trace has no steps.">,
               Number<"window_s">, Number<"idle_s", "Nothing computed; the columns behind it sum to it.">,
               Number<"input_s">, Number<"launch_s">, Number<"communication_s">, Number<"copy_s">,
               Number<"kernel_gap_s">, Number<"unknown_s">>;
using DeviceIdleTotalColumns =
    ColumnList<Integer<"rank">, Text<"cause">, Number<"idle_s">, Number<"idle_pct">>;

struct DeviceIdle {
  /// One row per step that is not cut off; without steps one row for all of the device's work.
  ///
  /// A step's window runs from the end of the step before to the end of its own last work (the first's from
  /// its start on the host). Each moment in which nothing computed is in one column:
  ///
  ///     communication  a collective ran, and nothing computed behind it
  ///     copy           a copy or a fill ran, and nothing else
  ///     input          nothing ran, the next work had not been launched, and the loop waited for its batch
  ///     launch         nothing ran, the next work had not been launched, and the host did something else
  ///     kernel_gap     nothing ran, the next work had been launched, and it began within a moment
  ///     unknown        nothing ran, the next work had been launched long before (it waits for something), or
  ///                    its launch is not in the file and the loop did not wait
  Table steps;
  /// The sums of all rows, the largest first.
  Table total;
};

/// `waits` are the loop's waits for its next batch (GetNext) on the clock of the file, in any order: what
/// Headrace recorded of the run, or `loader_waits(trace)`. How to read it: a large share of input means that
/// a faster input pipeline makes the device compute more; a large share of launch, that the host's own code
/// holds it up.
DeviceIdle device_idle(const trace::Trace& trace, std::span<const Interval> waits,
                       const DeviceIdleOptions& options = {});

}  // namespace headrace::analysis::device
