// Which call on the host started which work on the device.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/event_kind.h"

namespace headrace::trace {

/// In place of a row if there is none.
inline constexpr Row kNoRow = std::numeric_limits<Row>::max();

/// Launches and what they launched, tied together by the argument `correlation` of both.
///
/// A launch may have many rows on the device (a graph) and a row has one launch: where several calls carry
/// the same correlation (a runtime call and the driver's call inside it), the one that began first.
class Correlation {
 public:
  Correlation() = default;
  Correlation(const Columns& columns, const std::vector<EventKind>& kinds);

  /// The call that started a device row, kNoRow for rows of the host and where the file does not have it.
  Row launch_of(Row row) const noexcept { return launch_of_[row]; }

  /// The device rows that a call started, by their start; empty for other rows.
  std::span<const Row> started_by(Row launch) const noexcept;

  /// How far the device's stamps are from the host's: negative where most work begins before its launch, and by
  /// that much at least; positive where it begins more than ten minutes after it, and by that much at most. 0 where
  /// both have one clock. Nanoseconds.
  std::int64_t clock_gap_ns(const Columns& columns) const;

  /// Device rows whose launch is not in the file.
  std::size_t without_launch() const noexcept { return without_launch_; }

 private:
  Values<Row> launch_of_;
  /// Launches that started something, ascending; `started_` from `first_[i]` to `first_[i + 1]` belongs to
  /// the i-th.
  std::vector<Row> launches_;
  std::vector<std::uint32_t> first_;
  std::vector<Row> started_;
  std::size_t without_launch_ = 0;
};

}  // namespace headrace::trace
