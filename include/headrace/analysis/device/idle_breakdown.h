// Why each stream of a device had nothing to do.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

struct IdleBreakdownOptions {
  Scope scope;
  /// A gap that is shorter, between two pieces of work that were both launched in time, is what the device
  /// needs to get from one to the next.
  std::int64_t consecutive_kernel_delay_ns = 30'000;
  /// Also fills `IdleBreakdown::intervals`.
  bool interval_statistics = false;
};

struct IdleBreakdown {
  /// Three rows per stream, one per category:
  ///
  ///     rank device stream category gaps idle_s idle_pct
  ///
  /// host_wait: the host had not launched the next work yet when the last ended; kernel_wait: it had, and the
  /// gap is short; other: it had, and the gap is long (a wait for an event, another stream, another device),
  /// or the launch is not in the file and the gap is long. `idle_pct` is of the stream's idle time.
  ///
  /// How to read it: host_wait on the stream that computes means that the host cannot keep up.
  Table idle;
  /// Of each row's gaps: rank device stream category count mean_s std_s min_s p25_s p50_s p75_s max_s. No
  /// columns unless it was asked for.
  Table intervals;
};

/// A gap lies between the start of a piece of work and the latest end of everything before it on its stream;
/// what overlaps has none. Before the first and behind the last work of a stream there is no gap.
IdleBreakdown idle_breakdown(std::span<const trace::Trace> traces, const IdleBreakdownOptions& options = {});

}  // namespace headrace::analysis::device
