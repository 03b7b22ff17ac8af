// Arithmetic, limits and lists of places that the rules share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace headrace::analysis {

/// Each operator is simulated, in milliseconds; with more of them a verdict would take seconds.
inline constexpr std::size_t kMaxOperators = 32;

/// `part / whole`, 0 if there is no whole.
inline double ratio(double part, double whole) noexcept { return whole > 0 ? part / whole : 0; }

inline bool contains(const std::vector<int>& list, int value) noexcept {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace headrace::analysis
