// The host of any device: late launches, waits, Python's garbage, calls for memory, calls that cost once.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "analysis/device/callers.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/intervals.h"

namespace headrace::analysis::device {
namespace {

bool is_memory_call(std::string_view name) noexcept {
  if (!name.starts_with("cuda") && !name.starts_with("hip") && !name.starts_with("cu")) return false;
  if (name.find("Async") != std::string_view::npos) return false;
  return name.find("Malloc") != std::string_view::npos || name.find("Free") != std::string_view::npos ||
         name.find("HostAlloc") != std::string_view::npos;
}

bool compiles(std::string_view name) noexcept {
  name = name.substr(name.rfind(' ') + 1);  // behind a function's file and line
  const std::size_t at = name.find("ompil");
  if (at == std::string_view::npos || name.ends_with("wrapper")) return false;
  const std::string_view ending =
      name.substr(at + 5);  // not "compiled", "compiler": those run what was compiled
  return ending.starts_with("ation") ||
         (ending.starts_with('e') && ending.substr(0, 2) != "ed" && ending.substr(0, 2) != "er");
}

}  // namespace

std::vector<HostCall> one_offs(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const auto has = [&](std::string_view part) {
    return names_that(columns,
                      [&](std::string_view name) { return name.find(part) != std::string_view::npos; });
  };
  const std::vector<bool> begins = has("StreamBeginCapture");
  const std::vector<bool> ends = has("StreamEndCapture");
  const std::vector<bool> instantiates = has("GraphInstantiate");
  const std::vector<bool> compiling = names_that(columns, compiles);
  const std::vector<bool> others = names_that(columns, [](std::string_view name) {
    return trace::waits_for_device(name) || is_memory_call(name) ||
           name.find("emcpy") != std::string_view::npos;
  });
  std::vector<HostCall> found;
  std::map<std::uint32_t, trace::Row> capturing;  // by lane
  for (trace::Row row = 0; row < columns.size(); ++row) {
    const trace::Names::Id name = columns.name[row];
    const Interval time{columns.start_ns[row], columns.end_ns(row)};
    const bool is_call = trace.kinds[row] == trace::EventKind::runtime;
    if (is_call && begins[name]) capturing[columns.lane[row]] = row;
    if (const auto begun = capturing.find(columns.lane[row]);
        is_call && ends[name] && begun != capturing.end()) {
      found.push_back({begun->second, {columns.start_ns[begun->second], time.end_ns}});
      capturing.erase(begun);
    }
    const bool is_long =
        is_call && !others[name] && columns.duration_ns[row] >= kAdviceThresholds.long_call_ns;
    const bool is_compilation =
        compiling[name] && columns.phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
    if (is_long || is_compilation || (is_call && instantiates[name])) found.push_back({row, time});
  }
  return found;
}

std::vector<HostCall> memory_calls(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> of_memory = names_that(columns, is_memory_call);
  std::vector<HostCall> calls;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == trace::EventKind::runtime && of_memory[columns.name[row]])
      calls.push_back({row, {columns.start_ns[row], columns.end_ns(row)}});
  }
  return calls;
}

Intervals held_up(const trace::Trace& trace) {
  std::vector<Interval> times;
  for (const trace::Row row : trace::waits_for_older_work(trace))
    times.push_back({trace.columns().start_ns[row], trace.columns().end_ns(row)});
  for (const auto& calls : {memory_calls(trace), one_offs(trace)}) {
    for (const HostCall& each : calls) times.push_back(each.time);
  }
  return united(loader_waits(trace), merged(std::move(times)));
}

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
  evidence.launches_are_late = worst.share() > kLimits.launch_share || !evidence.behind_waits.empty();
  return found_if(
      worst.share() > kLimits.launch_share,
      {severity_of_share(worst.share()), figures_of(worst, "idle because nothing was launched for"),
       "device_idle: launch_s of window_s, limit " + percent(kLimits.launch_share), worst.share()});
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
    // The device's work is not in the file, or is on a clock of its own.
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
  worst.severity = severity_of_share(worst_share);
  return found_if(worst_share > kLimits.synchronisation_share, worst);
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
    if (count == 0) return {{Severity::none, std::to_string(recorded) + " collections", source}};
    return {{Severity::medium,
             std::to_string(count) + " long collections, " + duration(seconds(total_ns)) +
                 " in all, the longest " + duration(seconds(longest_ns)),
             source, 0, "", kCollectionCure}};
  }
  if (!evidence.has_device())
    return not_checked("no garbage collection is recorded, and no work on a device");
  const std::string source = "pauses of the device over " + duration(seconds(kLimits.silent_pause_ns)) +
                             " in which the host called the runtime for less than " +
                             percent(kLimits.silent_call_share) + "; no collections are recorded";
  if (pauses.empty())
    return {{Severity::none, "0 pauses", source, 0, "no pause looks like a garbage collection"}};
  SilentPause longest = pauses.front();
  for (const SilentPause& pause : pauses) {
    if (pause.time.end_ns - pause.time.begin_ns > longest.time.end_ns - longest.time.begin_ns)
      longest = pause;
  }
  return {{Severity::low,
           std::to_string(pauses.size()) + " pauses, the longest " +
               duration(seconds(longest.time.end_ns - longest.time.begin_ns)) + " on " +
               rank_text(longest.rank),
           source, 0, "the device pauses while the host calls nothing: perhaps Python's garbage collector",
           std::string("record collections (gc_detect_threshold, or gc.callbacks) to be sure; then ") +
               kCollectionCure}};
}

namespace {

struct CallsOfName {
  std::int64_t time_ns = 0;
  std::int64_t calls = 0;
  std::set<std::int64_t> steps;
};

/// "; most of it in backend_compile, 2 calls, 1.60 s, in steps 0 and 1".
std::string text_of(std::string_view name, const CallsOfName& calls) {
  std::string text = "; most of it in " + std::string(name) + ", " +
                     counted(static_cast<double>(calls.calls), "call") + ", " +
                     duration(seconds(calls.time_ns));
  constexpr std::size_t kFew = 3;  // more are a list that nobody reads
  if (calls.steps.empty() || calls.steps.size() > kFew) return text;
  text += calls.steps.size() == 1 ? ", in step " : ", in steps ";
  for (const std::int64_t step : calls.steps) {
    if (step != *calls.steps.begin()) text += step == *calls.steps.rbegin() ? " and " : ", ";
    text += std::to_string(step);
  }
  return text;
}

/// The rank that spends the largest share of `whole` in some calls, and the name that most of it is in.
class CostOfCalls {
 public:
  /// `hidden`: while it lasts the calls cost nothing.
  void add(const trace::Trace& trace, Interval whole, const std::vector<HostCall>& calls,
           const Intervals& hidden) {
    std::vector<Interval> times;
    std::map<std::string_view, CallsOfName> by_name;
    for (const HostCall& each : calls) {
      CallsOfName& of_name = by_name[trace.columns().name_of(each.row)];
      of_name.time_ns += total_ns(subtracted(Intervals{each.time}, hidden));
      ++of_name.calls;
      if (const std::int32_t step = trace.steps.step_of(each.row); step != trace::Steps::kNone)
        of_name.steps.insert(trace.steps.all()[static_cast<std::size_t>(step)].number);
      times.push_back(each.time);
    }
    keep_worst(worst, {&trace, trace.rank, seconds(total_ns(subtracted(merged(std::move(times)), hidden))),
                       seconds(whole.end_ns - whole.begin_ns)});
    const auto most = std::max_element(by_name.begin(), by_name.end(), [](const auto& a, const auto& b) {
      return a.second.time_ns < b.second.time_ns;
    });
    if (worst.trace == &trace) longest = most == by_name.end() ? "" : text_of(most->first, most->second);
  }

  RankShare worst;
  std::string longest;
};

constexpr const char* kNoHost = "the trace has no event of the host";

}  // namespace

Findings check_allocation_calls(Evidence& evidence) {
  CostOfCalls cost;
  for (const trace::Trace& trace : evidence.traces()) {
    const auto whole = worked_time(trace);
    if (!whole) continue;
    std::vector<HostCall> calls = memory_calls(trace);
    // Those before the first launch are start-up: one of them makes CUDA's context.
    std::erase_if(calls, [&](const HostCall& call) { return call.time.begin_ns < whole->begin_ns; });
    cost.add(trace, *whole, calls, {});
  }
  const RankShare& worst = cost.worst;
  if (worst.trace == nullptr) return not_checked(kNoHost);
  return found_if(
      worst.share() > kLimits.memory_call_share,
      {severity_of_share(worst.share()), figures_of(worst, "in such calls for") + cost.longest,
       "calls of the runtime that take or free memory, limit " + percent(kLimits.memory_call_share),
       worst.share()});
}

Findings check_one_off_calls(Evidence& evidence) {
  CostOfCalls cost;
  for (const trace::Trace& trace : evidence.traces()) {
    if (const auto whole = recorded_time(trace))
      cost.add(trace, *whole, one_offs(trace), busy(device_work(trace, Scope::everything()).work));
  }
  const RankShare& worst = cost.worst;
  if (worst.trace == nullptr) return not_checked(kNoHost);
  return found_if(
      worst.share() > kLimits.one_off_share,
      {severity_of_share(worst.share()), figures_of(worst, "the device idle in them for") + cost.longest,
       "calls of a millisecond that are no waits, compilations, captures of graphs; limit " +
           percent(kLimits.one_off_share),
       worst.share()});
}

}  // namespace headrace::analysis::device
