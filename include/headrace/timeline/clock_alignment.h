// Aligns the clock of a run with that of a device trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/profile/history.h"

namespace headrace::timeline {

/// The run's monotonic clock as Unix time, between its anchors by interpolation, beyond them at the same
/// distance. An anchor tells the wall clock once a second, so a clock that is set or slewed is followed.
class WallClock {
 public:
  explicit WallClock(std::span<const profile::TimeAnchor> anchors)
      : anchors_(anchors.begin(), anchors.end()) {}

  std::int64_t unix_ns(std::int64_t monotonic_ns) const noexcept;

 private:
  std::vector<profile::TimeAnchor> anchors_;
};

struct TimeRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Shift that turns the run's Unix time into the trace's, and how well it is known.
struct ClockAlignment {
  std::int64_t shift_ns = 0;
  /// Remaining error: the spread of the matched ranges around `shift_ns`, or, where the shift that they
  /// ask for is not applied, that shift. Nothing: unknown (no range is in both).
  std::optional<std::int64_t> error_ns;
  std::size_t matched = 0;  ///< ranges that are in both
  /// The shift that the matched ranges ask for; it is applied when at least three agree.
  std::int64_t found_ns = 0;
  bool applied = false;

  std::string sentence() const;
};

/// Finds the same calls in both: `ours` (GetNext, as Unix time) and `theirs` (the profiler's `__next__`
/// ranges, on the trace's clock). Both ascending. `clocks_agree`: the trace says what its zero is in Unix
/// time, so the shift is small; otherwise any shift is possible, and the pattern of the calls decides.
///
/// Calls are matched by order and duration; the shift is the median of what the pairs say, the error twice
/// their median deviation from it.
ClockAlignment align_clocks(std::span<const TimeRange> ours, std::span<const TimeRange> theirs,
                            bool clocks_agree);

}  // namespace headrace::timeline
