#include "headrace/analysis/device/steps.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/intervals.h"
#include "headrace/analysis/words.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {
namespace {

enum class StepRole : std::uint8_t {
  kernel,
  memcpy,
  memset,
  communication,
  runtime,
  data_loader,
  cpu,
  other
};
inline constexpr std::array kStepRoleNames = {"kernel",  "memcpy",      "memset", "communication",
                                              "runtime", "data_loader", "cpu",    "other"};
inline constexpr std::size_t kStepRoles = kStepRoleNames.size();

/// When each role was active, whatever else was; `other` is empty.
using RoleTimes = std::array<Intervals, kStepRoles>;

/// Steps as the breakdown counts them: they reach until their work on the device ends.
struct CountedStep {
  std::int64_t number = 0;
  Interval time;
};

using trace::EventKind;
using trace::Row;

bool is_collective_call(std::string_view name) {
  return name.starts_with("nccl:") || name.starts_with("gloo:");
}

/// The role of a row of the host by its name, asked once for each name.
class NamedRoles {
 public:
  explicit NamedRoles(const trace::Trace& trace)
      : columns_(trace.columns()),
        loads_(loader_wait_names(trace)),
        known_(columns_.names.size()),
        communicates_(columns_.names.size()) {}

  StepRole of(Row row) {
    std::optional<StepRole>& role = known_[columns_.name[row]];
    if (!role) {
      const std::string_view name = columns_.name_of(row);
      role = is_collective_call(name)            ? StepRole::communication
             : loads_[columns_.name[row]]        ? StepRole::data_loader
             : name.starts_with("ProfilerStep#") ? StepRole::other
                                                 : StepRole::cpu;
    }
    return *role;
  }

  bool loads(Row row) const { return loads_[columns_.name[row]]; }

  /// Whether a row of the device is a kernel of a collective.
  bool communicates(Row row) {
    std::optional<bool>& known = communicates_[columns_.name[row]];
    if (!known) known = kind_of_kernel(columns_.name_of(row)) == KernelKind::communication;
    return *known;
  }

 private:
  const trace::Columns& columns_;
  std::vector<bool> loads_;
  std::vector<std::optional<StepRole>> known_;
  std::vector<std::optional<bool>> communicates_;
};

bool is_driver(const trace::Columns& columns, Row row) {
  return columns.category_of(row).ends_with("_driver");
}

RoleTimes role_times(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  NamedRoles named(trace);
  std::unordered_set<std::int64_t> collectives;  // external ids
  const auto rows = static_cast<Row>(columns.size());
  for (Row row = 0; row < rows; ++row) {
    if (trace.kinds[row] == EventKind::operation && columns.external_id[row] > 0 &&
        named.of(row) == StepRole::communication) {
      collectives.insert(columns.external_id[row]);
    }
  }
  RoleTimes times;
  for (Row row = 0; row < rows; ++row) {
    StepRole role = StepRole::other;
    switch (trace.kinds[row]) {
      case EventKind::kernel:
        role = collectives.contains(columns.external_id[row]) || named.communicates(row)
                   ? StepRole::communication
                   : StepRole::kernel;
        break;
      case EventKind::computation:
        role = StepRole::kernel;
        break;
      case EventKind::collective:
        role = StepRole::communication;
        break;
      case EventKind::memory_copy:
        role = StepRole::memcpy;
        break;
      case EventKind::memory_set:
        role = StepRole::memset;
        break;
      case EventKind::runtime:
        if (!is_driver(columns, row)) role = StepRole::runtime;
        break;
      case EventKind::python:
        if (named.loads(row)) role = StepRole::data_loader;
        break;
      case EventKind::operation:
      case EventKind::annotation:
      case EventKind::device_annotation:
        role = named.of(row);
        break;
      default:
        break;
    }
    if (role != StepRole::other)
      times[static_cast<std::size_t>(role)].push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  for (Intervals& intervals : times) intervals = merged(std::move(intervals));
  return times;
}

/// Device work launched by the steps.
struct StepWork {
  std::vector<std::int64_t> works;  ///< pieces whose launch began in the step
  std::vector<std::int64_t> last_end_ns;
  std::int64_t first_start_ns = 0;  ///< of the first step's work
  std::int64_t before_ns = 0;  ///< when the last work ended that no step launched and that ended before it
  bool any = false;
};

StepWork work_of_steps(const trace::Trace& trace, const std::vector<trace::Step>& steps) {
  const trace::Columns& columns = trace.columns();
  StepWork found{std::vector<std::int64_t>(steps.size()), std::vector<std::int64_t>(steps.size()), 0, 0,
                 false};
  for (std::size_t i = 0; i < steps.size(); ++i) found.last_end_ns[i] = steps[i].end_ns;
  const auto rows = static_cast<Row>(columns.size());
  std::optional<std::int64_t> first;
  for (Row row = 0; row < rows; ++row) {
    if (!trace::is_device_work(trace.kinds[row])) continue;
    const Row launch = trace.steps.on_device() ? row : trace.correlation.launch_of(row);
    if (launch == trace::kNoRow) continue;
    // As the plugin counts: the whole call lies in the step.
    const std::int64_t begin = columns.start_ns[launch];
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), begin,
                         [](std::int64_t ns, const trace::Step& s) { return ns < s.start_ns; });
    if (after == steps.begin()) continue;
    const auto i = static_cast<std::size_t>(after - steps.begin()) - 1;
    if (columns.end_ns(launch) > steps[i].end_ns) continue;
    found.any = true;
    ++found.works[i];
    found.last_end_ns[i] = std::max(found.last_end_ns[i], columns.end_ns(row));
    if (i == 0 && (!first || columns.start_ns[row] < *first)) first = columns.start_ns[row];
  }
  found.first_start_ns = first.value_or(steps.empty() ? 0 : steps.front().start_ns);
  found.before_ns = steps.empty() ? 0 : steps.front().start_ns;
  for (Row row = 0; row < rows; ++row) {
    if (!trace::is_device_work(trace.kinds[row]) || trace.steps.step_of(row) != trace::Steps::kNone) continue;
    if (columns.end_ns(row) <= found.first_start_ns)
      found.before_ns = std::max(found.before_ns, columns.end_ns(row));
  }
  return found;
}

/// Steps at the end whose work on the device is not in the file, or not all of it, do not count.
std::size_t whole_steps(const std::vector<std::int64_t>& works) {
  std::size_t count = works.size();
  while (count > 0 && works[count - 1] == 0) --count;
  if (count >= 2 && static_cast<double>(works[count - 1]) < 0.8 * static_cast<double>(works[count - 2]))
    --count;
  return count;
}

bool has_host(const trace::Trace& trace) {
  return std::any_of(trace.kinds.begin(), trace.kinds.end(),
                     [](EventKind kind) { return kind != EventKind::other && !trace::is_on_device(kind); });
}

std::vector<CountedStep> counted_steps(const trace::Trace& trace) {
  const std::vector<trace::Step>& steps = trace.steps.all();
  if (steps.empty()) {
    const std::optional<Interval> whole = unmarked_step(trace);
    return whole && has_host(trace) ? std::vector<CountedStep>{{0, *whole}} : std::vector<CountedStep>{};
  }
  const StepWork work = work_of_steps(trace, steps);
  std::vector<CountedStep> counted;
  std::int64_t previous_end = work.before_ns;
  const std::size_t count = work.any ? whole_steps(work.works) : steps.size();
  for (std::size_t i = 0; i < count; ++i) {
    CountedStep step{steps[i].number, {steps[i].start_ns, steps[i].end_ns}};
    if (work.any) {
      const std::int64_t begin = std::max(previous_end, steps[i].start_ns);
      // The device was never at this step alone before the previous one ended.
      step.time = {begin, std::max(begin, work.last_end_ns[i])};
    }
    previous_end = step.time.end_ns;
    counted.push_back(step);
  }
  return counted;
}

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
