// A device's work while the loop ran. Declared as figure.h says; part of profile.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/figure.h"
#include "headrace/profile/word.h"

namespace headrace::profile {

/// Why a device computed nothing; the words of analysis/device/device_idle.h.
enum class IdleReason : std::uint8_t { input, launch, communication, copy, kernel_gap, unknown };

constexpr std::array<std::string_view, 6> names_of(IdleReason) noexcept {
  return {"input", "launch", "communication", "copy", "kernel_gap", "unknown"};
}

struct DeviceIdleCause {
  Word<IdleReason> cause;
  double idle_s = 0;
};

constexpr About about(Of<DeviceIdleCause>) {
  return {"DeviceIdleCause", "A part of the time in which a device computed nothing (device_traces.md)."};
}
template <class Visit>
constexpr void figures_of(Of<DeviceIdleCause>, Visit&& figure) {
  figure("cause", &DeviceIdleCause::cause, {"input, launch, communication, copy, kernel_gap or unknown."});
  figure("idle_s", &DeviceIdleCause::idle_s, {"Time lost to it."});
}

/// Reason for the gap between two steps, as far as a recording shows.
enum class GapReason : std::uint8_t { processing, transmission, getnext, unknown };

constexpr std::array<std::string_view, 4> names_of(GapReason) noexcept {
  return {"processing", "transmission", "getnext", "unknown"};
}

struct GapPart {
  Word<GapReason> cause;
  double gap_s = 0;
};

constexpr About about(Of<GapPart>) { return {"GapPart", "A part of the gap between two steps, a mean."}; }
template <class Visit>
constexpr void figures_of(Of<GapPart>, Visit&& figure) {
  figure("cause", &GapPart::cause,
         {"`processing`: GetNext waited, the queue on the device and the one on the host were empty. "
          "`transmission`: only the one on the device was. `getnext`: taking a batch that was there. "
          "`unknown`: the rest, such as launching the first operator."});
  figure("gap_s", &GapPart::gap_s, {"Time of it."});
}

struct StepSegment {
  std::string name;
  double start_s = 0;
  double takes_s = 0;
};

constexpr About about(Of<StepSegment>) {
  return {"StepSegment", "A part of a step that has a name of its own, such as one all-reduce; a mean."};
}
template <class Visit>
constexpr void figures_of(Of<StepSegment>, Visit&& figure) {
  figure("name", &StepSegment::name, {"As the trace calls it."});
  figure("start_s", &StepSegment::start_s, {"Since the step began."});
  figure("takes_s", &StepSegment::takes_s, {"How long it took."});
}

struct DeviceStep {
  std::int64_t step = 0;
  std::optional<double> iteration_gap_s;
  std::optional<double> forward_backward_s;
  std::optional<double> tail_s;
  double total_s = 0;
  double communication_s = 0;
  double communication_overlap_s = 0;  ///< negative: not known
};

constexpr About about(Of<DeviceStep>) {
  return {"DeviceStep",
          "A step of a device trace, cut on the device's clock. A part that is unknown is null, and the one "
          "to its left contains it."};
}
template <class Visit>
constexpr void figures_of(Of<DeviceStep>, Visit&& figure) {
  figure("step", &DeviceStep::step, {"The profiler's number.", &kName});
  figure("iteration_gap_s", &DeviceStep::iteration_gap_s, {"Until forward began."});
  figure("forward_backward_s", &DeviceStep::forward_backward_s, {"Forward and backward."});
  figure("tail_s", &DeviceStep::tail_s, {"From the end of backward on."});
  figure("total_s", &DeviceStep::total_s, {"The whole step."});
  figure("communication_s", &DeviceStep::communication_s, {"Time in which a collective ran."});
  figure(
      "communication_overlap_s", &DeviceStep::communication_overlap_s,
      {"The part of it under computation; null where the trace does not tell.", nullptr, Null::when_unset});
}

struct DeviceSteps {
  std::uint64_t steps = 0;
  std::uint64_t of_steps = 0;
  std::uint64_t tail_steps = 0;
  double iteration_gap_s = 0;
  double forward_backward_s = 0;
  double tail_s = 0;
  double communication_s = 0;
  double communication_overlap_s = 0;  ///< negative: not known
  std::vector<GapPart> gap;
  std::vector<StepSegment> segments;
  std::string fp_point;
  std::string bp_point;
  std::vector<DeviceStep> sequence;
};

constexpr About about(Of<DeviceSteps>) {
  return {"DeviceSteps", "The steps of a device trace (steps.md). Times are means over `steps`."};
}
template <class Visit>
constexpr void figures_of(Of<DeviceSteps>, Visit&& figure) {
  figure("steps", &DeviceSteps::steps, {"Steps in which the beginning of forward was found."});
  figure("of_steps", &DeviceSteps::of_steps, {"Whole steps of the trace."});
  figure("tail_steps", &DeviceSteps::tail_steps,
         {"Those of `steps` in which the end of backward was found too."});
  figure("iteration_gap_s", &DeviceSteps::iteration_gap_s, {"Until forward began."});
  figure("forward_backward_s", &DeviceSteps::forward_backward_s,
         {"Forward and backward, with the tail of steps whose end of backward is unknown."});
  figure("tail_s", &DeviceSteps::tail_s,
         {"From the end of backward on; 0 in steps whose end of backward is unknown."});
  figure("communication_s", &DeviceSteps::communication_s, {"Time in which a collective ran."});
  figure(
      "communication_overlap_s", &DeviceSteps::communication_overlap_s,
      {"The part of it under computation; null where the trace does not tell.", nullptr, Null::when_unset});
  figure("gap", &DeviceSteps::gap, {"What `iteration_gap_s` was spent on; empty where nothing tells."});
  figure("segments", &DeviceSteps::segments, {"Its collectives by name, where the trace tells them."});
  figure("fp_point", &DeviceSteps::fp_point,
         {"The work that forward begins with, as the user or the profiler named it; \"\": it was found."});
  figure("bp_point", &DeviceSteps::bp_point,
         {"The work that backward ends with, as the user or the profiler named it; \"\": it was found."});
  figure("sequence", &DeviceSteps::sequence, {"The last 512 steps, newest last."});
}

struct DeviceProfile {
  double window_s = 0;
  double idle_s = 0;  ///< negative: not known
  std::vector<DeviceIdleCause> causes;
  std::string waits_from;
  std::optional<double> clock_error_s;
  std::optional<std::int64_t> rank;
  std::optional<DeviceSteps> steps;
  std::vector<std::string> step_notes;
};

constexpr About about(Of<DeviceProfile>) {
  return {"DeviceProfile",
          "What a device did while the loop ran, from a trace that was laid beside the run "
          "(`report.with_trace`)."};
}
template <class Visit>
constexpr void figures_of(Of<DeviceProfile>, Visit&& figure) {
  figure("window_s", &DeviceProfile::window_s,
         {"Time looked at: of the trace's steps, or from the first to the last work on the device."});
  figure("idle_s", &DeviceProfile::idle_s,
         {"The part of it in which nothing was computed; null where the trace has steps only.", nullptr,
          Null::when_unset});
  figure("causes", &DeviceProfile::causes, {"Why, the largest first; they sum to `idle_s`."});
  figure("waits_from", &DeviceProfile::waits_from,
         {"Where the waits come from: `run` (recorded) or `trace` (its own `__next__` ranges)."});
  figure("clock_error_s", &DeviceProfile::clock_error_s,
         {"How far the run's clock and the trace's may be apart; null where no clocks were compared."});
  figure("rank", &DeviceProfile::rank, {"The rank of the trace; null where its file does not say.", &kName});
  figure("steps", &DeviceProfile::steps, {"The trace's steps; null where it has no whole step."});
  figure("step_notes", &DeviceProfile::step_notes, {"What the trace's steps lack, a sentence each."});
}

}  // namespace headrace::profile
