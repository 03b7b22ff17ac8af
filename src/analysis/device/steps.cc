#include "headrace/analysis/device/steps.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
Table steps(std::span<const trace::Trace> traces) {
  Rows<StepsColumns> rows;
  for (const trace::Trace& trace : traces) {
    const std::vector<trace::Step>& all = trace.steps.all();
    if (all.empty()) rows.note(trace.rank, " has no steps: call step() of the profiler after each");
    std::vector<std::vector<Work>> of_step(all.size());
    for (const Work& work : device_work(trace, Scope::everything()).work) {
      const std::int32_t step = trace.steps.step_of(work.row);
      if (step != trace::Steps::kNone) of_step[static_cast<std::size_t>(step)].push_back(work);
    }
    const bool cut_off = last_step_is_cut_off(trace);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<Work>& work = of_step[i];
      rows.add(trace.rank, all[i].number, all[i].start_ns, seconds(all[i].end_ns - all[i].start_ns),
               !cut_off || i + 1 != all.size(), work.size(),
               work.empty() ? all[i].start_ns : work.front().start_ns, seconds(span_ns(work)),
               seconds(total_ns(busy(work))), seconds(total_ns(busy(work, KernelKind::computation))),
               seconds(total_ns(busy(work, KernelKind::communication))),
               seconds(total_ns(busy(work, KernelKind::memory))));
    }
  }
  return rows.take();
}

namespace {

/// One entry per piece of work: index into `trace.steps.all()`, `Steps::kNone` if it began in no step.
///
/// A step's time reaches from its start on the host to the later of its end there and the last end of the
/// work that it launched. Work that begins in the time of several steps belongs to the one that launched it,
/// else to the one that began last.
std::vector<std::int32_t> step_membership(const trace::Trace& trace, std::span<const Work> work) {
  constexpr std::int32_t kNone = trace::Steps::kNone;
  const std::vector<trace::Step>& steps = trace.steps.all();
  std::vector<std::int64_t> ends;
  for (const trace::Step& step : steps) ends.push_back(step.end_ns);
  for (const Work& each : work) {
    const std::int32_t step = trace.steps.step_of(each.row);
    if (step == kNone) continue;
    std::int64_t& end_ns = ends[static_cast<std::size_t>(step)];
    end_ns = std::max(end_ns, each.end_ns);
  }
  std::vector<std::int32_t> result;
  result.reserve(work.size());
  // Work without a launch, if launches are recorded, is older than the recording, or of nobody's step.
  const bool launches_known = trace.correlation.without_launch() < trace.device_rows.size();
  for (const Work& each : work) {
    if (launches_known && trace.correlation.launch_of(each.row) == trace::kNoRow) {
      result.push_back(kNone);
      continue;
    }
    const auto covers = [&](std::int32_t step) {
      const auto i = static_cast<std::size_t>(step);
      return steps[i].start_ns <= each.start_ns && each.start_ns < ends[i];
    };
    const std::int32_t by_launch = trace.steps.step_of(each.row);
    if (by_launch != kNone && covers(by_launch)) {
      result.push_back(by_launch);
      continue;
    }
    const auto behind =
        std::upper_bound(steps.begin(), steps.end(), each.start_ns,
                         [](std::int64_t ns, const trace::Step& step) { return ns < step.start_ns; });
    // Only the step before may still be at work; further back none is looked for.
    const auto last = static_cast<std::int32_t>(behind - steps.begin()) - 1;
    if (last >= 0 && covers(last)) {
      result.push_back(last);
    } else {
      result.push_back(last >= 1 && covers(last - 1) ? last - 1 : kNone);
    }
  }
  return result;
}

/// Parts of a step's time, in nanoseconds.
struct Parts {
  std::int64_t computing = 0;
  std::int64_t communication = 0;
  std::int64_t exposed = 0;
  std::int64_t free = 0;
  std::int64_t bubble = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

bool is_receive(std::string_view name) noexcept { return name.starts_with("hcom_receive"); }

Parts parts_of(const trace::Columns& columns, std::span<const Work> work) {
  Parts parts;
  const Intervals computing = busy(work, KernelKind::computation);
  const Intervals communication = busy(work, KernelKind::communication);
  const Intervals both = united(computing, communication);
  parts.computing = total_ns(computing);
  parts.communication = total_ns(communication);
  parts.exposed = total_ns(both) - parts.computing;
  parts.first = work.front().start_ns;
  parts.last = parts.first + span_ns(work);
  parts.free = parts.last - parts.first - total_ns(both);
  for (const Work& each : work) {
    if (is_receive(columns.name_of(each.row))) parts.bubble += each.end_ns - each.start_ns;
  }
  return parts;
}

/// A rank's computation and communication, and their steps.
struct RankWork {
  std::vector<Work> work;
  std::vector<std::int32_t> steps;
};

RankWork rank_work(const trace::Trace& trace, Rows<StepTimeTableColumns>& rows) {
  DeviceWork all = device_work(trace, Scope::everything());
  rows.take_notes(all.notes);
  std::erase_if(all.work, [](const Work& each) {
    return each.kind != KernelKind::computation && each.kind != KernelKind::communication;
  });
  RankWork result{std::move(all.work), {}};
  result.steps = step_membership(trace, result.work);
  return result;
}

/// The profiler's own sums, by step.
class ProfilerSums {
 public:
  ProfilerSums(const trace::Trace& trace, const RankWork& rank) {
    if (!trace.file.notes.clean()) return;  // some of the rows may be missing
    const trace::Columns& columns = trace.columns();
    for (trace::Row row = 0; row < columns.size(); ++row) {
      if (trace.kinds[row] != trace::EventKind::summary) continue;
      for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (columns.name_of(row) == kNames[i]) add(i, {columns.start_ns[row], columns.end_ns(row)}, rank);
      }
    }
  }

  void put_into(std::vector<std::pair<std::int32_t, Parts>>& all) {
    if (by_step_.empty()) return;
    constexpr std::array<std::int64_t Parts::*, kNames.size()> kMembers = {
        &Parts::computing, &Parts::communication, &Parts::exposed, &Parts::free};
    for (auto& [step, parts] : all) {
      for (std::size_t i = 0; i < kMembers.size(); ++i)
        parts.*kMembers[i] = total_ns(merged(std::move(by_step_[step][i])));
    }
  }

 private:
  static constexpr std::size_t kFree = 3;
  static constexpr std::array<std::string_view, 4> kNames = {"Computing", "Communication",
                                                             "Communication(Not Overlapped)", "Free"};

  /// A row belongs to the step of the work that began with it or before it. Time between two steps is
  /// neither's.
  void add(std::size_t name, Interval interval, const RankWork& rank) {
    const auto behind =
        std::upper_bound(rank.work.begin(), rank.work.end(), interval.begin_ns,
                         [](std::int64_t ns, const Work& each) { return ns < each.start_ns; });
    if (behind == rank.work.begin()) return;
    const auto before = static_cast<std::size_t>(behind - rank.work.begin()) - 1;
    const bool is_last = before + 1 == rank.work.size();
    if (name == kFree && (is_last || rank.steps[before + 1] != rank.steps[before])) return;
    by_step_[rank.steps[before]][name].push_back(interval);
  }

  std::map<std::int32_t, std::array<std::vector<Interval>, kNames.size()>> by_step_;
};

std::vector<std::pair<std::int32_t, Parts>> steps_of(const trace::Trace& trace, const RankWork& rank) {
  const auto count = static_cast<std::int32_t>(trace.steps.all().size());
  std::vector<std::vector<Work>> by_step(static_cast<std::size_t>(std::max(count, 1)));
  for (std::size_t i = 0; i < rank.work.size(); ++i) {
    if (count == 0) {
      by_step[0].push_back(rank.work[i]);
    } else if (rank.steps[i] != trace::Steps::kNone) {
      by_step[static_cast<std::size_t>(rank.steps[i])].push_back(rank.work[i]);
    }
  }
  std::vector<std::pair<std::int32_t, Parts>> all;
  for (std::size_t i = 0; i < by_step.size(); ++i) {
    if (by_step[i].empty()) continue;
    const auto step = count == 0 ? trace::Steps::kNone : static_cast<std::int32_t>(i);
    all.emplace_back(step, parts_of(trace.columns(), by_step[i]));
  }
  ProfilerSums(trace, rank).put_into(all);
  return all;
}

/// When the device did what no step launched: work that was launched before the recording began.
Intervals busy_outside(const RankWork& rank) {
  Intervals result;
  for (std::size_t i = 0; i < rank.work.size(); ++i) {
    if (rank.steps[i] == trace::Steps::kNone) append(result, {rank.work[i].start_ns, rank.work[i].end_ns});
  }
  return result;
}

}  // namespace

Table step_time(std::span<const trace::Trace> traces) {
  Rows<StepTimeTableColumns> rows;
  for (const trace::Trace& trace : traces) {
    const RankWork rank = rank_work(trace, rows);
    std::int64_t done_ns = std::numeric_limits<std::int64_t>::min();  // the work of the steps before
    const Intervals of_no_step = busy_outside(rank);
    for (const auto& [index, parts] : steps_of(trace, rank)) {
      const bool in_step = index != trace::Steps::kNone;
      const trace::Step step = in_step ? trace.steps.all()[static_cast<std::size_t>(index)] : trace::Step{};
      const Interval before{std::max(step.start_ns, done_ns), parts.first};
      const std::int64_t preparing_ns =
          before.end_ns <= before.begin_ns ? 0 : total_ns(subtracted(std::array{before}, of_no_step));
      done_ns = std::max(done_ns, parts.last);
      rows.add(trace.rank, in_step ? step.number : trace::kAbsent, seconds(parts.computing),
               seconds(parts.exposed), seconds(parts.communication - parts.exposed),
               seconds(parts.communication), seconds(parts.free),
               seconds(parts.last - parts.first - parts.bubble), seconds(parts.bubble),
               seconds(parts.exposed - parts.bubble), in_step ? seconds(preparing_ns) : kNoFigure);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
