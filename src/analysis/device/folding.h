// Which names of a long list are shown one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

/// How many of `totals_ns` (descending) come before the rest, which is folded together: as many as it takes
/// to cover `time_share` of their sum, but `most` where that is not 0.
inline std::size_t shown_names(std::span<const std::int64_t> totals_ns, std::size_t most, double time_share) {
  std::size_t limit = totals_ns.size();
  if (most != 0 && most < limit) limit = most;
  if (time_share >= 1) return limit;
  double whole = 0;
  for (const std::int64_t total : totals_ns) whole += static_cast<double>(total);
  double covered = 0;
  for (std::size_t i = 0; i < limit; ++i) {
    if (covered >= time_share * whole) return i;
    covered += static_cast<double>(totals_ns[i]);
  }
  return limit;
}

}  // namespace headrace::analysis::device
