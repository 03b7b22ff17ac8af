// How one operator's service times vary: spread, and whether a few items are of another kind.
#pragma once

#include <cstddef>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// An item that takes more medians is one of a tail.
inline constexpr double kTailMedians = 5;

struct ServiceShape {
  std::size_t samples = 0;  ///< of the recorded sequence; 0: read from the histogram alone
  double mean_s = 0;
  double median_s = 0;
  double cv = 0;               ///< standard deviation / mean: 0 constant, 1 exponential
  double tail_item_share = 0;  ///< items that took more than 5 medians
  double tail_busy_share = 0;  ///< busy time in those items
  double tail_mean_s = 0;
  double between_share =
      0;  ///< items that are neither usual (2 medians) nor slow (6 tenths of the tail's mean)

  /// Rare items of another kind, and next to nothing between them and the usual ones.
  bool heavy_tailed(const TailThresholds& thresholds) const noexcept {
    return tail_item_share > 0 && tail_item_share <= thresholds.most_items &&
           between_share <= thresholds.most_between;
  }
};

ServiceShape shape_of(const profile::OperatorProfile& op);

/// Standard deviation / mean of the sink's own compute, from the recorded steps; 0 where they are too few.
double compute_cv(const profile::SinkProfile& sink);

}  // namespace headrace::analysis
