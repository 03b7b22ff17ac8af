// Why each stream of a device had nothing to do.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

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
/// Of the lengths of gaps; quantiles interpolate linearly.
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
  /// Of each row's gaps. No columns unless it was asked for.
  Table intervals;
};

/// A gap lies between the start of a piece of work and the latest end of everything before it on its stream;
/// what overlaps has none. Before the first and behind the last work of a stream there is no gap.
IdleBreakdown idle_breakdown(std::span<const trace::Trace> traces, const IdleBreakdownOptions& options = {});

}  // namespace headrace::analysis::device
