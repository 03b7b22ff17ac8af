// Figures per time window, in fixed memory whatever the length of the run.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

inline constexpr int kWindows = 128;
inline constexpr std::int64_t kFirstWindowNs = 100'000'000;
inline constexpr std::uint32_t kMaxDoublings = 32;

/// Windows of loop time: [0, w), [w, 2w), ... When all 128 are used up, neighbours are merged and w doubles.
///
/// Each window stores *running totals at its end*: closing a window is a copy, merging two windows
/// is dropping one, and a writer that slept over ten windows fills them in afterwards. Grids of different
/// writers differ only by doublings, so a reader aligns them exactly.
struct WindowGrid {
  Relaxed<std::uint32_t> closed;
  Relaxed<std::uint32_t> doublings;

  std::int64_t width_ns() const noexcept { return kFirstWindowNs << doublings.load(); }
  std::int64_t next_boundary_ns() const noexcept { return (closed.load() + 1) * width_ns(); }

  /// Closes every window that ended at or before `loop_ns`: `fill(index, boundary_ns)` writes the totals that
  /// held at the boundary, `halve()` keeps every second entry of the arrays.
  template <class Fill, class Halve>
  void advance(std::int64_t loop_ns, Fill&& fill, Halve&& halve) noexcept {
    for (std::int64_t boundary = next_boundary_ns(); loop_ns >= boundary; boundary = next_boundary_ns()) {
      const std::uint32_t index = closed.load();
      if (index == kWindows) {
        if (doublings.load() >= kMaxDoublings) return;
        halve();
        closed.store(kWindows / 2);
        doublings.bump(1);
        continue;
      }
      fill(index, boundary);
      closed.store(index + 1);
    }
  }

  void reset() noexcept {
    closed.store(0);
    doublings.store(0);
  }
};

/// Running totals of `kFields` figures at the end of each window.
template <int kFields>
struct WindowLog {
  std::array<std::array<Relaxed<std::int64_t>, kFields>, kWindows> totals;

  void halve() noexcept {
    for (int i = 0; i < kWindows / 2; ++i) {
      for (int field = 0; field < kFields; ++field) {
        at(i, field).store(at(2 * i + 1, field).load());
      }
    }
  }
  Relaxed<std::int64_t>& at(int window, int field) noexcept {
    return totals[static_cast<std::size_t>(window)][static_cast<std::size_t>(field)];
  }
  std::int64_t get(int window, int field) const noexcept {
    return totals[static_cast<std::size_t>(window)][static_cast<std::size_t>(field)].load();
  }
};

}  // namespace headrace::metrics
