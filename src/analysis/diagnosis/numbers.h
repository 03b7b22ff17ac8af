// Arithmetic that the rules share.
#pragma once

#include <algorithm>
#include <cmath>

namespace headrace::analysis {

/// `part / whole`, 0 where there is no whole.
inline double ratio(double part, double whole) noexcept { return whole > 0 ? part / whole : 0; }

/// 0 at `from`, 1 at `to`, linear between.
inline double ramp(double value, double from, double to) noexcept {
  return std::clamp((value - from) / (to - from), 0.0, 1.0);
}

}  // namespace headrace::analysis
