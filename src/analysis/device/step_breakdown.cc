#include "headrace/analysis/device/step_breakdown.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/step_roles.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis::device {
namespace {

using RoleSums = std::array<std::int64_t, kStepRoles>;

/// Splits steps among the roles: each moment to the first one that is active.
std::vector<RoleSums> split(const std::vector<CountedStep>& steps, const RoleTimes& times) {
  std::vector<Interval> whole;
  for (const CountedStep& step : steps) whole.push_back(step.time);
  Intervals rest = merged(std::move(whole));
  std::vector<RoleSums> sums(steps.size());
  const auto charge = [&](std::size_t role, const Intervals& taken) {
    const Cover cover(taken);
    for (std::size_t i = 0; i < steps.size(); ++i) sums[i][role] = cover.within(steps[i].time);
  };
  for (std::size_t role = 0; role + 1 < kStepRoles; ++role) {
    charge(role, intersected(rest, times[role]));
    rest = subtracted(rest, times[role]);
  }
  charge(kStepRoles - 1, rest);
  return sums;
}

/// A loop that gets its batches between the steps that it marks.
void note_time_between(std::int64_t rank, const std::vector<CountedStep>& steps,
                       Rows<StepBreakdownColumns>& rows) {
  constexpr double kMuch = 0.2;
  std::vector<Interval> times;
  for (const CountedStep& step : steps) times.push_back(step.time);
  const Intervals within = merged(std::move(times));
  if (within.empty()) return;  // steps may take no time
  const double span = seconds(within.back().end_ns - within.front().begin_ns);
  const double between = span - seconds(total_ns(within));
  if (span > 0 && between > kMuch * span)
    rows.note(rank, " spends " + analysis::percent(between / span) +
                        " of the time between its steps, in none of them");
}

}  // namespace

StepBreakdown step_breakdown(std::span<const trace::Trace> traces) {
  Rows<StepBreakdownColumns> rows;
  Rows<StepBreakdownAverageColumns> average;
  for (const trace::Trace& trace : traces) {
    if (trace.clock_gap_ns != 0) continue;  // the trace's notes say it
    const std::vector<CountedStep> steps = counted_steps(trace);
    if (steps.empty()) {
      rows.note(trace.rank, " has no event of the host");
      continue;
    }
    if (trace.steps.all().empty())
      rows.note(trace.rank, " has no marked steps: the whole trace counts as step 0");
    note_time_between(trace.rank, steps, rows);
    const RoleTimes times = role_times(trace);
    const std::vector<RoleSums> sums = split(steps, times);
    RoleSums all{};
    std::int64_t whole = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::array<double, kStepRoles> role_s{};
      for (std::size_t role = 0; role < kStepRoles; ++role) {
        role_s[role] = seconds(sums[i][role]);
        all[role] += sums[i][role];
      }
      const std::int64_t duration = steps[i].time.end_ns - steps[i].time.begin_ns;
      rows.add(trace.rank, steps[i].number, role_s, seconds(duration));
      whole += duration;
    }
    for (std::size_t role = 0; role < kStepRoles; ++role) {
      average.add(trace.rank, kStepRoleNames[role], seconds(all[role]) / static_cast<double>(steps.size()),
                  whole > 0 ? 100 * seconds(all[role]) / seconds(whole) : 0);
    }
  }
  return {rows.take(), average.take()};
}

}  // namespace headrace::analysis::device
