#include "headrace/analysis/device/step_breakdown.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/step_roles.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/loader_waits.h"

namespace headrace::analysis::device {
namespace {

using RoleSums = std::array<std::int64_t, kStepRoles>;

/// How much of a stretch of time intervals cover, whatever its length in the same time: steps may overlap.
class Cover {
 public:
  explicit Cover(const Intervals& intervals) : intervals_(intervals), before_ns_{0} {
    before_ns_.reserve(intervals.size() + 1);
    for (const Interval& each : intervals)
      before_ns_.push_back(before_ns_.back() + each.end_ns - each.begin_ns);
  }

  std::int64_t within(Interval time) const { return until(time.end_ns) - until(time.begin_ns); }

 private:
  std::int64_t until(std::int64_t ns) const {
    const auto at = std::partition_point(intervals_.begin(), intervals_.end(),
                                         [&](const Interval& each) { return each.end_ns <= ns; });
    const std::int64_t whole_ns = before_ns_[static_cast<std::size_t>(at - intervals_.begin())];
    return at == intervals_.end() ? whole_ns : whole_ns + std::max<std::int64_t>(0, ns - at->begin_ns);
  }

  const Intervals& intervals_;
  std::vector<std::int64_t> before_ns_;  ///< the sum of all before the i-th
};

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

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

using Findings = Rows<StepBreakdownFindingsColumns>;

/// The part of the steps' span in which the device worked, copies included; 1 if it has no kernel.
double utilisation(const std::vector<CountedStep>& steps, const RoleTimes& times) {
  const Interval span{steps.front().time.begin_ns, steps.back().time.end_ns};
  Intervals work;
  for (const StepRole role : {StepRole::kernel, StepRole::communication, StepRole::memcpy, StepRole::memset})
    work = united(work, times[static_cast<std::size_t>(role)]);
  if (times[static_cast<std::size_t>(StepRole::kernel)].empty() || span.end_ns <= span.begin_ns) return 1;
  return seconds(Cover(work).within(span)) / seconds(span.end_ns - span.begin_ns);
}

/// The range that the waits were found by, unless it is PyTorch's.
std::string in_range(const std::string& wait) {
  return wait.empty() || wait.starts_with("enumerate(") ? "" : " in " + shown_range(wait);
}

void find(Findings& findings, const trace::Trace& trace, const std::array<double, kStepRoles>& shares,
          double busy, bool has_device, const StepBreakdownOptions& options) {
  const double input = shares[static_cast<std::size_t>(StepRole::data_loader)];
  if (input > options.input_share) {
    findings.add(trace.rank, "input", 100 * input,
                 percent(input) + " of the step is spent waiting for the data loader" +
                     in_range(longest_loader_wait(trace)) +
                     (has_device ? " while the device does nothing" : "") +
                     ": the report on the loop says which operator is too slow (headrace report; hr.wrap or "
                     "headrace run records it)");
  }
  const double communication = shares[static_cast<std::size_t>(StepRole::communication)];
  if (communication > options.communication_share) {
    findings.add(trace.rank, "communication", 100 * communication,
                 percent(communication) +
                     " of the step is communication that no computation hides: larger batches "
                     "or gradient accumulation make it rarer, overlap hides it");
  }
  // Where the input or calls of the runtime take most of the rest, they keep the device from working, not its
  // batch.
  const double reason = std::max(input, shares[static_cast<std::size_t>(StepRole::runtime)]);
  if (busy < options.utilisation_share && reason < 1 - busy - reason) {
    findings.add(trace.rank, "utilisation", 100 * busy,
                 "the device works only " + percent(busy) +
                     " of the time: a larger batch keeps it busier, unless the input holds it up");
  }
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
    rows.note(rank, " spends " + percent(between / span) + " of the time between its steps, in none of them");
}

}  // namespace

StepBreakdown step_breakdown(std::span<const trace::Trace> traces, const StepBreakdownOptions& options) {
  Rows<StepBreakdownColumns> rows;
  Rows<StepBreakdownAverageColumns> average;
  Findings findings;
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
    std::array<double, kStepRoles> shares{};
    for (std::size_t role = 0; role < kStepRoles; ++role) {
      shares[role] = whole > 0 ? seconds(all[role]) / seconds(whole) : 0;
      average.add(trace.rank, to_string(static_cast<StepRole>(role)),
                  seconds(all[role]) / static_cast<double>(steps.size()), 100 * shares[role]);
    }
    find(findings, trace, shares, utilisation(steps, times),
         !times[static_cast<std::size_t>(StepRole::kernel)].empty(), options);
  }
  return {rows.take(), average.take(), findings.take()};
}

}  // namespace headrace::analysis::device
