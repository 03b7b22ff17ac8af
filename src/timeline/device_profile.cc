#include "headrace/timeline/device_profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/step_points.h"
#include "headrace/timeline/clock_alignment.h"
#include "timeline/device_facts.h"

namespace headrace::timeline {
namespace {

using analysis::device::Interval;

struct Waits {
  std::vector<Interval> intervals;  ///< on the trace's clock
  std::optional<double> clock_error_s;
};

/// The recorded calls of a loop, as the trace would have stamped them; nothing if the clocks cannot be
/// laid over each other.
std::optional<Waits> waits_of_run(const trace::Trace& trace, const profile::History& history,
                                  std::string_view loader, std::span<const Interval> own) {
  const trace::Columns& columns = trace.columns();
  const std::int64_t latest = *std::max_element(columns.start_ns.begin(), columns.start_ns.end());
  const bool knows_unix_time = trace.file.base_time_ns.has_value() || latest >= kUnixTime;
  const std::int64_t unix_of_zero = trace.file.base_time_ns.value_or(0);
  const WallClock wall(history.anchors);
  std::vector<TimeRange> ours;
  for (const profile::LoopHistory& loop : history.loops) {
    if (loop.loader != loader) continue;
    for (const profile::GetNextCall& call : loop.calls) {
      if (!call.merged) ours.push_back({wall.unix_ns(call.begin_ns), wall.unix_ns(call.end_ns)});
    }
  }
  if (ours.empty()) return std::nullopt;
  std::vector<TimeRange> theirs;
  for (const Interval& range : own)
    theirs.push_back({range.begin_ns + unix_of_zero, range.end_ns + unix_of_zero});
  const ClockAlignment found = align_clocks(ours, theirs, knows_unix_time);
  if (!knows_unix_time && !found.applied) return std::nullopt;
  Waits waits;
  if (found.error_ns) waits.clock_error_s = static_cast<double>(*found.error_ns) * 1e-9;
  const std::int64_t shift = found.shift_ns - unix_of_zero;
  for (const TimeRange& range : ours)
    waits.intervals.push_back({range.begin_ns + shift, range.end_ns + shift});
  return waits;
}

double sum(const analysis::Numbers& figures) {
  double total = 0;
  for (const double figure : figures) total += figure;
  return total;
}

/// As many as a run keeps of its own steps.
constexpr std::size_t kMaxSteps = 512;

std::optional<double> known(double figure) {
  return std::isnan(figure) ? std::nullopt : std::optional<double>(figure);
}

/// The steps of a device trace as a report holds them: `StepPoints::steps` of one rank; empty if it has no rows.
std::optional<profile::DeviceSteps> device_steps(const analysis::Table& steps,
                                                 const analysis::device::StepPointsOptions& points) {
  const std::size_t rows = steps.rows();
  if (rows == 0) return std::nullopt;
  profile::DeviceSteps found;
  found.of_steps = rows;
  found.fp_point = points.fp_point;
  found.bp_point = points.bp_point;
  for (std::size_t row = 0; row < rows; ++row) {
    profile::DeviceStep step;
    step.step = steps.integers("step")[row];
    step.iteration_gap_s = known(steps.numbers("iteration_gap_s")[row]);
    step.forward_backward_s = known(steps.numbers("forward_backward_s")[row]);
    step.tail_s = known(steps.numbers("tail_s")[row]);
    step.total_s = steps.numbers("total_s")[row];
    step.communication_s = steps.numbers("communication_s")[row];
    step.communication_overlap_s = steps.numbers("communication_overlap_s")[row];
    if (step.iteration_gap_s) {
      ++found.steps;
      found.tail_steps += step.tail_s ? 1 : 0;
      found.iteration_gap_s += *step.iteration_gap_s;
      found.forward_backward_s += step.forward_backward_s.value_or(0);
      found.tail_s += step.tail_s.value_or(0);
      found.communication_s += step.communication_s;
      found.communication_overlap_s += step.communication_overlap_s;
    }
    if (row + kMaxSteps >= rows) found.sequence.push_back(step);
  }
  if (found.steps > 0) {
    for (double* sum : {&found.iteration_gap_s, &found.forward_backward_s, &found.tail_s,
                        &found.communication_s, &found.communication_overlap_s})
      *sum /= static_cast<double>(found.steps);
  }
  return found;
}

}  // namespace

std::optional<profile::DeviceProfile> device_profile(const trace::Trace& trace,
                                                     const profile::History* history, std::string_view loader,
                                                     const analysis::device::StepPointsOptions& points) {
  if (trace.columns().size() == 0) return std::nullopt;
  const analysis::device::Intervals own = analysis::device::loader_waits(trace);
  std::optional<Waits> waits;
  if (history != nullptr) waits = waits_of_run(trace, *history, loader, own);

  profile::DeviceProfile device;
  device.waits_from = waits ? "run" : "trace";
  if (waits) device.clock_error_s = waits->clock_error_s;
  const analysis::device::DeviceIdle idle =
      analysis::device::device_idle(trace, waits ? std::span<const Interval>(waits->intervals) : own);
  if (idle.steps.rows() == 0) return std::nullopt;
  device.window_s = sum(idle.steps.numbers("window_s"));
  device.idle_s = sum(idle.steps.numbers("idle_s"));
  for (std::size_t row = 0; row < idle.total.rows(); ++row) {
    device.causes.push_back({idle.total.texts("cause")[row], idle.total.numbers("idle_s")[row]});
  }
  device.rank = trace.file.rank;
  analysis::device::StepPoints found = analysis::device::step_points({&trace, 1}, points);
  device.steps = device_steps(found.steps, points);
  device.step_notes = std::move(found.steps.notes);
  return device;
}

}  // namespace headrace::timeline
