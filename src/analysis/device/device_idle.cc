#include "headrace/analysis/device/device_idle.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/device/order.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/profile/device_profile.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

bool is_known_wait(std::string_view name) noexcept {
  if (name.starts_with("enumerate(DataLoader)") || name.starts_with("enumerate(DataPipe)")) return true;
  if (name.starts_with("IteratorGetNext")) return name.ends_with("::DoCompute");
  return (name.starts_with('$') && name.ends_with(" __next__"));
}

/// Words of a name in lower case: "nextBatch" and "next_batch" have two.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  bool was_lower = false;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    const bool begins = std::isupper(letter) != 0 && was_lower;
    if ((std::isalpha(letter) == 0 || begins) && !words.back().empty()) words.emplace_back();
    if (std::isalpha(letter) != 0) words.back() += static_cast<char>(std::tolower(letter));
    was_lower = std::islower(letter) != 0;
  }
  return words;
}

bool speaks_of_data(std::string_view name) {
  constexpr std::array<std::string_view, 18> kData = {
      "next",  "batch",  "batches", "data",   "dataset", "loader",   "dataloader", "load", "loading",
      "input", "inputs", "feed",    "infeed", "fetch",   "iterator", "sample",     "read", "dequeue"};
  constexpr std::array<std::string_view, 7> kElse = {"checkpoint", "ckpt",    "save", "params",
                                                     "parameters", "weights", "model"};
  const std::vector<std::string> words =
      words_of(name.substr(name.rfind(' ') + 1));  // behind a function's file and line
  const auto any_of = [&](const auto& wanted) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
    });
  };
  return any_of(kData) && !any_of(kElse);
}

bool on_host(const trace::Trace& trace, Row row) {
  return trace.columns().phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
}

/// Names of ranges in which something runs: a launch, work that another thread gets, a compiled function.
std::vector<bool> names_that_start_work(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> runs = names_that(columns, [](std::string_view name) {
    return name.find("Execut") != std::string_view::npos ||
           name.find("PjitFunction") != std::string_view::npos;
  });
  const trace::ArgumentColumn* const asks = columns.argument("_p");
  std::vector<bool> starts(columns.names.size(), false);
  std::vector<bool> seen(columns.size(), false);
  const auto mark = [&](Row row) {
    for (; row != trace::kNoRow && !seen[row]; row = trace.calls.parent_of(row)) {
      seen[row] = true;
      starts[columns.name[row]] = true;
    }
  };
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == EventKind::runtime || (runs[columns.name[row]] && on_host(trace, row))) mark(row);
  }
  for (std::size_t i = 0; asks != nullptr && i < asks->rows.size(); ++i) mark(asks->rows[i]);
  return starts;
}

bool is_step(const trace::Trace& trace, Row row) {
  if (row == trace::kNoRow || trace.steps.step_of(row) == trace::Steps::kNone) return false;
  const trace::Step& step = trace.steps.all()[static_cast<std::size_t>(trace.steps.step_of(row))];
  return trace.columns().start_ns[row] == step.start_ns && trace.columns().end_ns(row) == step.end_ns;
}

/// Whether a range in which nothing starts can be told from one that computes: a device works, or the steps
/// are those of JAX and TensorFlow, whose computations have names of their own.
bool tells_what_works(const trace::Trace& trace) {
  const trace::ArgumentColumn* const numbers = trace.columns().argument("step_num");
  return !trace.device_rows.empty() || (numbers != nullptr && !numbers->rows.empty());
}

/// The name that is the wait where none is known by itself; `missing` if none is.
trace::Names::Id inferred_wait(const trace::Trace& trace) {
  constexpr double kLeastShare = 0.05;
  const trace::Columns& columns = trace.columns();
  if (trace.steps.all().empty() || !tells_what_works(trace)) return trace::Names::missing;
  const std::vector<bool> starts = names_that_start_work(trace);
  std::set<Row> around_steps;
  for (Row row = 0; row < columns.size(); ++row) {
    if (on_host(trace, row) && is_step(trace, row)) around_steps.insert(trace.calls.parent_of(row));
  }
  std::map<trace::Names::Id, std::int64_t> spent;
  for (Row row = 0; row < columns.size(); ++row) {
    if (!on_host(trace, row) || starts[columns.name[row]]) continue;
    const Row around = trace.calls.parent_of(row);
    // In a step, or beside the steps: a for loop gets its batch before a step begins.
    const bool beside = trace.steps.step_of(row) == trace::Steps::kNone && around_steps.contains(around);
    if (beside || is_step(trace, around)) spent[columns.name[row]] += columns.duration_ns[row];
  }
  std::int64_t steps_ns = 0;
  for (const trace::Step& step : trace.steps.all()) steps_ns += step.end_ns - step.start_ns;
  trace::Names::Id longest = trace::Names::missing;
  for (const auto& [name, ns] : spent) {
    if (static_cast<double>(ns) < kLeastShare * static_cast<double>(steps_ns)) continue;
    if (!speaks_of_data(columns.names[name])) continue;
    if (longest == trace::Names::missing || ns > spent[longest]) longest = name;
  }
  return longest;
}

}  // namespace

std::vector<bool> loader_wait_names(const trace::Trace& trace) {
  std::vector<bool> waits = names_that(trace.columns(), is_known_wait);
  if (std::find(waits.begin(), waits.end(), true) == waits.end()) {
    const trace::Names::Id inferred = inferred_wait(trace);
    if (inferred != trace::Names::missing) waits[inferred] = true;
  }
  return waits;
}

std::string longest_loader_wait(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> waits = loader_wait_names(trace);
  std::map<trace::Names::Id, std::int64_t> spent;
  for (Row row = 0; row < columns.size(); ++row) {
    if (waits[columns.name[row]] && on_host(trace, row)) spent[columns.name[row]] += columns.duration_ns[row];
  }
  const auto longest = std::max_element(spent.begin(), spent.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == spent.end() ? std::string() : std::string(columns.names[longest->first]);
}

std::string shown_range(std::string_view name) {
  const std::size_t space = name.find(' ');
  if (!name.starts_with('$') || space == std::string_view::npos) return std::string(name);
  return std::string(name.substr(space + 1)).append(" (").append(name.substr(1, space - 1)).append(")");
}

Intervals loader_waits(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> waits = loader_wait_names(trace);
  std::vector<Interval> found;
  for (Row row = 0; row < columns.size(); ++row) {
    if (waits[columns.name[row]] && on_host(trace, row))
      found.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  return merged(std::move(found));
}

std::optional<Interval> unmarked_step(const trace::Trace& trace) {
  std::optional<Interval> time = worked_time(trace);
  if (!time || trace.device_rows.empty() || trace.clock_gap_ns != 0) return time;
  const Intervals waits = loader_waits(trace);
  if (!waits.empty()) time->begin_ns = std::min(time->begin_ns, waits.front().begin_ns);
  return time;
}

namespace {

using profile::IdleReason;

constexpr auto kCauses = names_of(IdleReason{});
/// When the device did not compute, by cause; disjoint.
class ByCause : public std::array<Intervals, kCauses.size()> {
 public:
  using std::array<Intervals, kCauses.size()>::operator[];
  Intervals& operator[](IdleReason cause) { return (*this)[static_cast<std::size_t>(cause)]; }
};

/// Charges one gap in which nothing ran, and which ends with the start of `next`.
void charge(const trace::Trace& trace, Interval gap, const Work& next, std::span<const Interval> waits,
            bool after_older_work, const DeviceIdleOptions& options, ByCause& result) {
  const trace::Row call = trace.correlation.launch_of(next.row);
  const bool launched = call != trace::kNoRow;
  // Until it is launched the host holds it up. Where that is not known, a wait for the input says so.
  std::int64_t launched_ns =
      launched ? std::clamp(trace.columns().start_ns[call], gap.begin_ns, gap.end_ns) : gap.end_ns;
  // A call that lasts (the first, which loads the kernel's module) holds it up until the call's own end.
  if (launched && trace.columns().duration_ns[call] >= options.consecutive_kernel_delay_ns)
    launched_ns = std::clamp(trace.columns().end_ns(call), launched_ns, gap.end_ns);
  const Intervals before = merged({{gap.begin_ns, launched_ns}});
  for (const Interval& wait : intersected(before, waits)) append(result[IdleReason::input], wait);
  for (const Interval& rest : subtracted(before, waits))
    append(result[launched && !after_older_work ? IdleReason::launch : IdleReason::unknown], rest);
  const bool short_gap = gap.end_ns - launched_ns < options.consecutive_kernel_delay_ns;
  append(result[short_gap ? IdleReason::kernel_gap : IdleReason::unknown], {launched_ns, gap.end_ns});
}

ByCause causes_of(const trace::Trace& trace, std::span<const Work> work, Interval whole,
                  const Intervals& waits, const DeviceIdleOptions& options) {
  const Intervals computing = united(busy(work, KernelKind::computation), busy(work, KernelKind::other));
  const Intervals collectives = busy(work, KernelKind::communication);
  ByCause result;
  result[IdleReason::communication] = subtracted(collectives, computing);
  result[IdleReason::copy] = subtracted(subtracted(busy(work, KernelKind::memory), computing), collectives);

  auto next = work.begin();
  auto wait = waits.begin();
  for (const Interval& gap : subtracted(std::array{whole}, busy(work))) {
    while (next != work.end() && next->start_ns < gap.end_ns) ++next;
    while (wait != waits.end() && wait->end_ns <= gap.begin_ns) ++wait;
    auto behind = wait;
    while (behind != waits.end() && behind->begin_ns < gap.end_ns) ++behind;
    if (next != work.end()) {
      // Device work before the first recorded one is not in the file if the host waited for it.
      const bool after_older_work = next == work.begin() && !trace::waits_for_older_work(trace).empty();
      charge(trace, gap, *next, std::span(wait, behind), after_older_work, options, result);
    } else {
      append(result[IdleReason::unknown], gap);
    }
  }
  return result;
}

/// The steps' windows, or one over all that the device did if there are no steps.
std::vector<StepWindow> windows_of(const trace::Trace& trace, std::span<const Work> work) {
  if (work.empty()) return {};
  std::vector<StepWindow> windows;
  if (trace.clock_gap_ns == 0) windows = step_windows(trace, step_pieces(trace));
  if (windows.empty()) windows.push_back({trace::kAbsent, trace::Steps::kNone, *unmarked_step(trace)});
  return windows;
}

}  // namespace

DeviceIdle device_idle(const trace::Trace& trace, std::span<const Interval> waits,
                       const DeviceIdleOptions& options) {
  const DeviceWork all = device_work(trace, Scope::everything());
  const std::vector<StepWindow> windows = windows_of(trace, all.work);
  const Intervals sorted_waits = merged(std::vector<Interval>(waits.begin(), waits.end()));

  Rows<DeviceIdleColumns> steps;
  Rows<DeviceIdleTotalColumns> total;
  steps.take_notes(all.notes);
  if (!windows.empty() && waits.empty())
    steps.note(trace.rank, ": no waits for the input are known, so none of its idle time is charged to it");
  total.notes = steps.notes;
  ByCause causes;
  if (!windows.empty()) {
    const Interval whole{windows.front().time.begin_ns, windows.back().time.end_ns};
    causes = causes_of(trace, all.work, whole, sorted_waits, options);
  }
  const std::vector<Cover> covers(causes.begin(), causes.end());

  std::array<std::int64_t, kCauses.size()> sums_ns{};
  for (const StepWindow& window : windows) {
    std::array<double, kCauses.size()> parts_s{};
    std::int64_t idle_ns = 0;
    for (std::size_t cause = 0; cause < kCauses.size(); ++cause) {
      const std::int64_t part_ns = covers[cause].within(window.time);
      parts_s[cause] = seconds(part_ns);
      sums_ns[cause] += part_ns;
      idle_ns += part_ns;
    }
    steps.add(trace.rank, window.number, seconds(window.time.end_ns - window.time.begin_ns), seconds(idle_ns),
              parts_s);
  }

  const std::int64_t whole_ns = std::accumulate(sums_ns.begin(), sums_ns.end(), std::int64_t{0});
  for (const std::size_t cause :
       descending_order(kCauses.size(), [&](std::size_t each) { return sums_ns[each]; })) {
    if (windows.empty()) break;
    total.add(trace.rank, kCauses[cause], seconds(sums_ns[cause]), percent(sums_ns[cause], whole_ns));
  }
  return {steps.take(), total.take()};
}

}  // namespace headrace::analysis::device
