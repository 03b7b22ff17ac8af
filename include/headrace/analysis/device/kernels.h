// Every kernel by its name: how often, how long.
#pragma once

#include <cstddef>
#include <span>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

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
/// (times of streams that ran side by side add up). Names that the options leave out are one row "others" behind the rest of their kind, with the figures of their calls.
Table kernels(std::span<const trace::Trace> traces, const KernelsOptions& options = {});

}  // namespace headrace::analysis::device
