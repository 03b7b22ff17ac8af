// How much of its time a device computed, did something else, or did nothing and why; and its kernels by
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

using TimeBreakdownColumns = ColumnList<
    RankColumns, Number<"idle_s", "Nothing ran: much of it means that the device waits for the host.">,
    Number<"compute_s", "Some computation ran.">,
    Number<"non_compute_s",
           "Only communication or copies ran: much of it means that it waits for other devices or for data.">,
    Number<"kernel_span_s", "From the first start to the last end of anything; the three sum to it.">,
    Number<"idle_pct">, Number<"compute_pct">, Number<"non_compute_pct">>;

/// One row per rank that has work on a device.
Table time_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

// --- how much of the communication was hidden behind computation ---

using OverlapColumns = ColumnList<
    RankColumns, Number<"communication_s", "Some kernel of the kind ran.">, Number<"computation_s">,
    Number<"overlap_s", "Both ran.">,
    Number<
        "overlap_pct",
        "Of the communication: close to 100 it costs nothing, close to 0 all of it is added to the step.">>;

/// One row per rank that has work on a device.
Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

// --- how much of the busy time went to which kinds of work, alone and at the same time ---

using KernelBreakdownColumns = ColumnList<
    RankColumns,
    Text<"kind",
         "computation, communication, memory, other; several: computation overlapping communication.">,
    Number<"total_s">, Number<"total_pct", "Of the busy time, to which the rows of a rank sum.">>;

/// For each rank one row per combination of kinds that ran at the same time, the longest first. Each moment
/// is in exactly one row.
Table kernel_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options = {});

struct KernelsOptions {
  Scope scope;
  /// Also copies and fills.
  bool memory = true;
  /// At most so many names of each rank and kind, those that took longest; 0: all.
  std::size_t most_names = 0;
  /// Only so many names as it takes to cover this share of the time of each rank and kind.
  double time_share = 1;
};

using KernelsColumns = ColumnList<Integer<"rank">, Text<"name">, Text<"kind">, CallColumns>;

/// For each rank and kind one row per name, the longest in total first. `total_pct` is of all the rank's rows
/// (times of streams that ran side by side add up). Names that the options leave out are one row "others"
/// behind the rest of their kind, with the figures of their calls.
Table kernels(std::span<const trace::Trace> traces, const KernelsOptions& options = {});

struct IdleBreakdownOptions {
  Scope scope;
  /// A gap that is shorter, between two pieces of work that were both launched in time, is what the device
  /// needs to get from one to the next.
  std::int64_t consecutive_kernel_delay_ns = 30'000;
  /// Also fills `IdleBreakdown::intervals`.
  bool interval_statistics = false;
};

using IdleBreakdownColumns =
    ColumnList<StreamColumns, Text<"category", "host_wait, kernel_wait or other.">, Integer<"gaps">,
               Number<"idle_s">, Number<"idle_pct", "Of the stream's idle time.">>;
/// Lengths of gaps; quantiles interpolate linearly.
using IdleIntervalsColumns =
    ColumnList<StreamColumns, Text<"category">, Integer<"count">, Number<"mean_s">, Number<"std_s">,
               Number<"min_s">, Number<"p25_s">, Number<"p50_s">, Number<"p75_s">, Number<"max_s">>;

struct IdleBreakdown {
  /// Three rows per stream, one per category.
  ///
  /// host_wait: the host had not launched the next work yet when the last ended; kernel_wait: it had, and the
  /// gap is short; other: it had, and the gap is long (a wait for an event, another stream, another device),
  /// or the launch is not in the file and the gap is long.
  ///
  /// How to read it: host_wait on the stream that computes means that the host cannot keep up.
  Table idle;
  /// Gap lengths of each row. No columns unless asked for.
  Table intervals;
};

/// A gap lies between the start of a piece of work and the latest end of everything before it on its stream;
/// what overlaps has none. Before the first and behind the last work of a stream there is no gap.
IdleBreakdown idle_breakdown(std::span<const trace::Trace> traces, const IdleBreakdownOptions& options = {});

}  // namespace headrace::analysis::device
