// Figures of durations: seconds, shares, quantiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace headrace::analysis::device {

/// In place of a figure that is not there.
inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

constexpr double seconds(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e9; }

/// `part` of `whole` in percent; no figure if there is no whole.
constexpr double percent(std::int64_t part, std::int64_t whole) noexcept {
  return whole == 0 ? kNoFigure : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// NaN if there is no figure: all but `count` of nothing, `std` of a single value.
struct Description {
  std::size_t count = 0;
  double mean = kNoFigure;
  /// Sample standard deviation (divisor: count - 1).
  double std = kNoFigure;
  double min = kNoFigure;
  /// Quantiles interpolate linearly between the two nearest values, as numpy and pandas do.
  double p25 = kNoFigure;
  double p50 = kNoFigure;
  double p75 = kNoFigure;
  double max = kNoFigure;
};

Description describe(std::vector<double> values);

/// `level` held for `duration_ns`.
struct Held {
  double level = 0;
  std::int64_t duration_ns = 0;
};

/// A level over time, each value weighted with how long it held.
struct TimeWeighted {
  std::int64_t total_ns = 0;
  double mean = kNoFigure;
  /// The level that was not exceeded for that share of the time.
  double p25 = kNoFigure;
  double p50 = kNoFigure;
  double p75 = kNoFigure;
};

/// Levels of no duration do not count.
TimeWeighted weigh(std::vector<Held> levels);

}  // namespace headrace::analysis::device
