#include "analysis/device/step_windows.h"

#include <algorithm>

#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

std::optional<Interval> recorded_time(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  std::optional<Interval> time;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == trace::EventKind::other) continue;
    if (!time) time = Interval{columns.start_ns[row], columns.end_ns(row)};
    time->begin_ns = std::min(time->begin_ns, columns.start_ns[row]);
    time->end_ns = std::max(time->end_ns, columns.end_ns(row));
  }
  return time;
}

std::optional<Interval> worked_time(const trace::Trace& trace) {
  const std::optional<std::int64_t> first_ns = trace::first_launch_ns(trace);
  const std::optional<Interval> recorded = recorded_time(trace);
  if (!first_ns) return recorded;
  Interval time{*first_ns, *first_ns};
  for (const trace::Row row : trace.device_rows)
    time.end_ns = std::max(time.end_ns, trace.columns().end_ns(row));
  if (trace.clock_gap_ns != 0) return time;
  constexpr double kLittle = 0.05;  // of the recording: such a start or end explains nothing, and stays
  const double little_ns = kLittle * static_cast<double>(recorded->end_ns - recorded->begin_ns);
  if (static_cast<double>(time.begin_ns - recorded->begin_ns) < little_ns) time.begin_ns = recorded->begin_ns;
  if (static_cast<double>(recorded->end_ns - time.end_ns) < little_ns) time.end_ns = recorded->end_ns;
  return time;
}

std::vector<StepPiece> step_pieces(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  std::vector<StepPiece> pieces;
  const DeviceWork all = device_work(trace, Scope::everything());
  for (const Work& work : all.work) {
    const std::int32_t step = trace.steps.step_of(work.row);
    if (step == trace::Steps::kNone) continue;
    const bool computes = work.kind == KernelKind::computation || work.kind == KernelKind::other;
    pieces.push_back(
        {step, work.start_ns, work.end_ns, work.row, trace.correlation.launch_of(work.row), computes});
  }
  for (trace::Row row = 0; all.work.empty() && row < columns.size(); ++row) {
    // Ranges of steps, loaders and optimizers were operators once.
    if (trace.kinds[row] != trace::EventKind::operation ||
        columns.name_of(row).find('#') != std::string_view::npos)
      continue;
    const std::int32_t step = trace.steps.step_of(row);
    if (step != trace::Steps::kNone)
      pieces.push_back({step, columns.start_ns[row], columns.end_ns(row), row, row, true});
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const StepPiece& a, const StepPiece& b) { return a.step < b.step; });
  return pieces;
}

std::vector<StepWindow> step_windows(const trace::Trace& trace, const std::vector<StepPiece>& pieces) {
  const std::vector<trace::Step>& steps = trace.steps.all();
  const std::size_t complete = steps.size() - (last_step_is_cut_off(trace) ? 1 : 0);
  std::vector<StepWindow> windows;
  auto piece = pieces.begin();
  for (std::size_t i = 0; i < complete; ++i) {
    const std::int64_t begin_ns = i == 0 ? steps[0].start_ns : windows.back().time.end_ns;
    const bool has_pieces = piece != pieces.end() && piece->step == static_cast<std::int32_t>(i);
    std::int64_t end_ns = has_pieces ? begin_ns : std::max(begin_ns, steps[i].end_ns);
    for (; piece != pieces.end() && piece->step == static_cast<std::int32_t>(i); ++piece)
      end_ns = std::max(end_ns, piece->end_ns);
    windows.push_back({steps[i].number, static_cast<std::int32_t>(i), {begin_ns, end_ns}});
  }
  return windows;
}

}  // namespace headrace::analysis::device
