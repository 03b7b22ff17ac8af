// Draws the history of a run above the device's rows of a timeline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "headrace/profile/history.h"
#include "headrace/timeline/clock_alignment.h"
#include "headrace/timeline/event_writer.h"

namespace headrace::timeline {

/// A place in a device trace, as JSON texts of its process and thread, that an arrow may end in.
struct DeviceSlice {
  std::string pid_json;
  std::string tid_json;
  std::int64_t begin_ns = 0;  ///< as our events: Unix time
};

/// The first work of the device that was launched in [begin, end); nothing if none was, or if unknown.
using FirstKernel = std::function<std::optional<DeviceSlice>(std::int64_t begin_ns, std::int64_t end_ns)>;

/// Times of one run on the timeline: its own clock as Unix time, plus the shift to the device's.
struct RunClock {
  WallClock wall;
  std::int64_t shift_ns = 0;

  std::int64_t at(std::int64_t monotonic_ns) const noexcept { return wall.unix_ns(monotonic_ns) + shift_ns; }
};

/// Writes the process `pid` of one rank:
///
///     GetNext        one slice per call; several that followed each other too fast are one, with a share
///     steps          from a batch's delivery to the next call
///     <annotations>  ranges that the program named, per thread
///     batches        when each batch was being made, by worker where that is known
///     <operator>     one row per worker: busy, blocked-in (first operator's row), blocked-out (last one's)
///
/// and one counter per queue. Arrows: batch ready, step that consumed it, first kernel of that step. Slices
/// of a row never overlap, unless one is inside the other.
void write_run(const profile::History& history, const RunClock& clock, std::int64_t pid, EventWriter& events,
               const FirstKernel& first_kernel, std::uint64_t first_flow);

}  // namespace headrace::timeline
