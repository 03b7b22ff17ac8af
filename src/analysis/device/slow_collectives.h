// The slow rank of a collective, and the collectives that use a slow link.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "headrace/analysis/device/cluster.h"

namespace headrace::analysis::device {

/// A rank and how long it was in the collective, seconds.
using RankDuration = std::pair<std::int64_t, double>;

/// The rank whose duration is abnormally short: the others waited for it. Nothing if none stands out.
///
/// 3 to 100 ranks: the one-sided Dixon test at 99.5 % on the smallest value. More: three standard deviations
/// below the mean; if only values above are as far off, the smallest. Two: shorter by more than 5 % of the
/// longer. Fewer than four different values among more than two ranks say nothing.
std::optional<std::int64_t> slow_rank_of(std::span<const RankDuration> durations);

Table slow_ranks_table(const ClusterData& data);
Table slow_links_table(const ClusterData& data);

}  // namespace headrace::analysis::device
