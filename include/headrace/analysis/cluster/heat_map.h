// Ranks against steps, made small enough to be drawn: how late each rank is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/analysis/cluster/slow_ranks.h"

namespace headrace::analysis::cluster {

struct HeatMapOptions {
  /// More ranks or steps share a row or a column.
  std::size_t most_rows = 160;
  std::size_t most_columns = 128;
  /// Only these ranks, one row each and in this order; empty: all, ascending. Lateness is beside all ranks.
  std::vector<std::int64_t> only;
};

struct HeatMap {
  /// First and last rank of each row, first and last step of each column.
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  std::vector<std::pair<std::int64_t, std::int64_t>> columns;
  /// Row by row: the greatest lateness in the field as a share of the job's step, so that one late rank among
  /// many stays visible. NaN: no rank of the row has such a step.
  std::vector<double> late_share;
};

/// Pure; thread-safe. Steps that fewer than half of the ranks have are left out. Empty without common steps.
HeatMap heat_map(std::span<const RankSteps> ranks, const HeatMapOptions& options = {});

}  // namespace headrace::analysis::cluster
