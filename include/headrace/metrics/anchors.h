// Pairs of (run clock, wall clock) that align a run with a device trace and date its last heartbeat.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/clock.h"
#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

struct Anchor {
  Relaxed<std::int64_t> monotonic_ns;  ///< Clock::now_ns()
  Relaxed<std::int64_t>
      realtime_ns;  ///< CLOCK_REALTIME at the same moment; jumps when the system's clock is set
};

/// The first anchor is kept for ever; the others are the newest ones. Single writer.
struct AnchorRing {
  static constexpr std::uint32_t kLength = 64;

  Relaxed<std::uint64_t> count;
  std::array<Anchor, kLength> anchors;

  void add(const ClockMoment& moment) noexcept {
    const std::uint64_t number = count.load();
    const std::uint64_t slot = number < kLength ? number : 1 + (number - 1) % (kLength - 1);
    anchors[slot].monotonic_ns.store(moment.now_ns);
    anchors[slot].realtime_ns.store(moment.realtime_ns);
    count.store(number + 1);
  }
  void add_now() noexcept { add(Clock::moment()); }
};

}  // namespace headrace::metrics
