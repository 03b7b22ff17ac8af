// What keeps the host of any device from launching work: late launches, waits for the device, Python's garbage.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/held_up.h"
#include "analysis/device/advice/rule.h"
#include "analysis/device/names_that.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/intervals.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

bool is_collection(std::string_view category) noexcept { return category == "gc" || category == "GC"; }

/// From the first step's start to the last end; what the device did if there are no steps.
std::optional<Interval> time_of_steps(const trace::Trace& trace) {
  const std::vector<trace::Step>& steps = trace.steps.all();
  if (steps.empty()) return unmarked_step(trace);
  Interval span{steps.front().start_ns, steps.front().end_ns};
  for (const trace::Step& step : steps) span.end_ns = std::max(span.end_ns, step.end_ns);
  return span;
}

/// The operator that a call belongs to, or the outermost caller that has a name.
std::string operator_around(const trace::Trace& trace, Row row) {
  for (Row at = trace.calls.parent_of(row); at != trace::kNoRow; at = trace.calls.parent_of(at)) {
    if (trace.kinds[at] == EventKind::operation) return std::string(trace.columns().name_of(at));
  }
  return {};
}

}  // namespace

Findings check_launch_bound(Evidence& evidence) {
  RankShare worst;
  for (const trace::Trace& trace : evidence.traces()) {
    RankShare rank = idle_share(evidence, trace, "launch_s");
    if (const auto waited = evidence.behind_waits.find(&trace); waited != evidence.behind_waits.end())
      rank.part = std::max(0.0, rank.part - waited->second);
    keep_worst(worst, rank);
  }
  if (worst.trace == nullptr) return not_checked("the trace has no work on a device");
  const std::string figures = figures_of(worst, "idle because nothing was launched for");
  const std::string source = "device_idle: launch_s of window_s, limit " + percent(kLimits.launch_share);
  evidence.launches_are_late = worst.share() > kLimits.launch_share || !evidence.behind_waits.empty();
  return found_if(
      worst.share() > kLimits.launch_share, "the host launches work in time",
      {severity_of_share(worst.share()), "the host launches work too late: the device runs out of it",
       figures,
       "larger batches, fused operators or graph mode make fewer launches; keep .item() and prints of "
       "tensors out of the step",
       source, worst.share()});
}

namespace {

/// Pauses of the device that began while the host waited for it: it had nothing launched ahead.
Intervals cost_of(const trace::Trace& trace, const Intervals& waits) {
  const Intervals work = busy(device_work(trace, Scope::everything()).work);
  Intervals pauses;
  auto wait = waits.begin();
  for (std::size_t i = 1; i < work.size(); ++i) {
    const Interval pause{work[i - 1].end_ns, work[i].begin_ns};
    while (wait != waits.end() && wait->end_ns <= pause.begin_ns) ++wait;
    if (wait == waits.end()) break;
    if (wait->begin_ns < pause.begin_ns && wait->end_ns < pause.end_ns) append(pauses, pause);
  }
  return subtracted(pauses, held_up(trace));
}

}  // namespace

Findings check_synchronisation(Evidence& evidence) {
  Finding worst;
  double worst_share = -1;
  for (const trace::Trace& trace : evidence.traces()) {
    const trace::Columns& columns = trace.columns();
    const std::optional<Interval> span = time_of_steps(trace);
    // What the device did is not in the file, or is on a clock of its own.
    if (!span || trace.device_rows.empty() || trace.clock_gap_ns != 0) continue;
    const std::vector<bool> waits = names_that(columns, trace::waits_for_device);
    std::vector<Interval> found;
    Row longest = trace::kNoRow;
    for (Row row = 0; row < columns.size(); ++row) {
      if (trace.kinds[row] != EventKind::runtime || !waits[columns.name[row]]) continue;
      found.push_back({columns.start_ns[row], columns.end_ns(row)});
      if (longest == trace::kNoRow || columns.duration_ns[row] > columns.duration_ns[longest]) longest = row;
    }
    const std::size_t calls = found.size();
    const double lost = seconds(total_ns(cost_of(trace, merged(std::move(found)))));
    const double whole = seconds(span->end_ns - span->begin_ns);
    const double share = whole > 0 ? lost / whole : 0;
    if (share > kLimits.synchronisation_share) evidence.behind_waits[&trace] = lost;
    if (share <= worst_share) continue;
    worst_share = worst.share = share;
    worst.figures = rank_text(trace.rank) + ": idle for " + duration(lost) + " of " + duration(whole) + ", " +
                    percent(share) + ", behind " + counted(static_cast<double>(calls), "wait");
    if (longest == trace::kNoRow) continue;
    worst.figures += "; the longest, " + std::string(columns.name_of(longest)) + ", took " +
                     duration(seconds(columns.duration_ns[longest]));
    if (const std::string around = operator_around(trace, longest); !around.empty())
      worst.figures += " in " + around;
  }
  if (worst_share < 0) return not_checked("no trace has work on a device, and its host, by one clock");
  worst.source = "pauses of the device that begin inside a call of the runtime that waits for it, limit " +
                 percent(kLimits.synchronisation_share);
  if (worst_share <= kLimits.synchronisation_share)
    return nothing_found("the device is seldom idle behind a wait of the host", worst.figures, worst.source);
  worst.severity = severity_of_share(worst_share);
  worst.says = "the host waits for the device, which then has nothing to do";
  worst.cure =
      "move .item(), .cpu() and prints of tensors behind the step or do them every N steps; if the device "
      "was inside a collective then, the rank that comes late is the reason";
  return {worst};
}

namespace {

/// A pause of the device in which the host hardly called the runtime.
struct SilentPause {
  std::int64_t rank = 0;
  Interval time;
};

std::vector<SilentPause> silent_pauses(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const Intervals work = busy(device_work(trace, Scope::everything()).work);
  std::vector<Interval> calls;
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == EventKind::runtime) calls.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  if (calls.empty()) return {};  // not recorded, so silence says nothing
  std::sort(calls.begin(), calls.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  const Intervals busy_host = merged(calls);
  std::vector<SilentPause> pauses;
  for (std::size_t i = 1; i < work.size(); ++i) {
    const Interval gap{work[i - 1].end_ns, work[i].begin_ns};
    const std::int64_t length = gap.end_ns - gap.begin_ns;
    if (length <= kLimits.silent_pause_ns) continue;
    const auto first =
        std::lower_bound(calls.begin(), calls.end(), gap.begin_ns,
                         [](const Interval& call, std::int64_t ns) { return call.begin_ns < ns; });
    const auto last =
        std::lower_bound(first, calls.end(), gap.end_ns,
                         [](const Interval& call, std::int64_t ns) { return call.begin_ns < ns; });
    const double called = seconds(total_ns(intersected(std::array{gap}, busy_host)));
    const double per_us = static_cast<double>(last - first) / (static_cast<double>(length) / 1e3);
    if (called < kLimits.silent_call_share * seconds(length) && per_us < kLimits.silent_calls_per_us)
      pauses.push_back({trace.rank, gap});
  }
  return pauses;
}

constexpr const char* kCollectionCure =
    "gc.freeze() after start-up, a higher gc.set_threshold(), or gc.disable() and gc.collect() between "
    "epochs";

}  // namespace

Findings check_garbage_collection(Evidence& evidence) {
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;
  std::size_t count = 0;
  std::size_t recorded = 0;
  std::vector<SilentPause> pauses;
  for (const trace::Trace& trace : evidence.traces()) {
    const trace::Columns& columns = trace.columns();
    const std::vector<bool> collections = names_that(columns, is_collection);
    for (Row row = 0; row < columns.size(); ++row) {
      if (columns.phase[row] != 'X' || !collections[columns.category[row]]) continue;
      ++recorded;
      if (columns.duration_ns[row] < kLimits.collection_ns) continue;
      ++count;
      total_ns += columns.duration_ns[row];
      longest_ns = std::max(longest_ns, columns.duration_ns[row]);
    }
    if (recorded == 0) {
      const std::vector<SilentPause> more = silent_pauses(trace);
      pauses.insert(pauses.end(), more.begin(), more.end());
    }
  }
  if (recorded > 0) {
    const std::string source =
        "events of category gc, limit " + duration(seconds(kLimits.collection_ns)) + " each";
    if (count == 0)
      return nothing_found("Python's garbage collector is quick", std::to_string(recorded) + " collections",
                           source);
    return {{Severity::medium, "Python's garbage collector stops the loop",
             std::to_string(count) + " long collections, " + duration(seconds(total_ns)) +
                 " in all, the longest " + duration(seconds(longest_ns)),
             kCollectionCure, source}};
  }
  if (!evidence.has_device())
    return not_checked("no garbage collection is recorded, and no work on a device");
  const std::string source = "pauses of the device over " + duration(seconds(kLimits.silent_pause_ns)) +
                             " in which the host called the runtime for less than " +
                             percent(kLimits.silent_call_share) + "; no collections are recorded";
  if (pauses.empty()) return nothing_found("no pause looks like a garbage collection", "0 pauses", source);
  SilentPause longest = pauses.front();
  for (const SilentPause& pause : pauses) {
    if (pause.time.end_ns - pause.time.begin_ns > longest.time.end_ns - longest.time.begin_ns)
      longest = pause;
  }
  return {
      {Severity::low, "the device pauses while the host calls nothing: perhaps Python's garbage collector",
       std::to_string(pauses.size()) + " pauses, the longest " +
           duration(seconds(longest.time.end_ns - longest.time.begin_ns)) + " on " + rank_text(longest.rank),
       std::string("record collections (gc_detect_threshold, or gc.callbacks) to be sure; then ") +
           kCollectionCure,
       source}};
}

}  // namespace headrace::analysis::device
