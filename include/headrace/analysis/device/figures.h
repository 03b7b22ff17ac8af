// Integer nanoseconds into what tables show.
#pragma once

#include <cstdint>
#include <limits>

namespace headrace::analysis::device {

/// In place of a figure that is not there.
inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

constexpr double seconds(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e9; }

/// `part` of `whole` in percent; no figure if there is no whole.
constexpr double percent(std::int64_t part, std::int64_t whole) noexcept {
  return whole == 0 ? kNoFigure : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace headrace::analysis::device
