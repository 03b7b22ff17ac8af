// One counter of the kernel becomes one figure of the HostCell.
#pragma once

#include <cstdint>

#include "headrace/metrics/host_cell.h"

namespace headrace::profile {

/// Part of a counter's growth over `real_ns` that fell into the `loop_ns` during which the loop ran, taken as
/// even.
std::int64_t running_part(std::int64_t growth, std::int64_t loop_ns, std::int64_t real_ns) noexcept;

/// Adds up a counter over loop time and distributes the totals over the windows.
///
/// Counters are read at their own pace, while windows close every tick: a window first gets the total of the
/// last reading, and the next reading interpolates over all windows that closed since.
class FigureTracker {
 public:
  FigureTracker(metrics::HostCell& cell, metrics::HostFigure figure) noexcept;

  /// The counter stands at `raw` at `now` (Clock), when the loop clock says `loop_ns`. The first call is the
  /// baseline.
  void add(std::int64_t raw, std::int64_t now, std::int64_t loop_ns) noexcept;
  /// It could not be read. Stays as it is at first (the next reading covers the gap), unknown from the third
  /// time on.
  void fail() noexcept;
  /// The counter counts something else from now on: `raw` is its new baseline.
  void rebase(std::int64_t raw) noexcept {
    raw_ = raw;
    rate_ = 0;
  }
  /// Growth per ns between the last two readings, by the clock; 0 before the second.
  double rate() const noexcept { return rate_; }

  /// The loop begins: all that was counted is dropped; the interval that is open counts from loop time 0.
  void begin() noexcept;

  bool has_baseline() const noexcept { return has_baseline_; }

 private:
  metrics::Relaxed<std::int64_t>& total() const noexcept {
    return cell_.totals[static_cast<std::size_t>(figure_)];
  }
  void lay(std::int64_t from_loop_ns, std::int64_t to_loop_ns, std::int64_t from_total,
           std::int64_t growth) noexcept;
  void show(bool available) noexcept;

  metrics::HostCell& cell_;
  int figure_;
  bool begun_ = false;
  bool has_baseline_ = false;
  int failures_ = 0;
  std::int64_t raw_ = 0;
  std::int64_t at_ns_ = 0;
  double rate_ = 0;
  std::int64_t at_loop_ns_ = 0;
};

}  // namespace headrace::profile
