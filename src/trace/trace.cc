#include "headrace/trace/trace.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "trace/parallel.h"
#include "trace/sort_runs.h"

namespace headrace::trace {

namespace {

std::vector<Row> device_rows_of(const Columns& columns, const std::vector<EventKind>& kinds) {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(std::count_if(kinds.begin(), kinds.end(), is_device_work)));
  for (Row row = 0; row < columns.size(); ++row) {
    if (is_device_work(kinds[row])) rows.push_back(row);
  }
  sort_runs(rows, [&](Row a, Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
  return rows;
}

/// "1.5 ms", "90 s".
std::string span_text(std::int64_t ns) {
  return ns < 10'000'000'000 ? std::to_string(ns / 1'000'000) + " ms"
                             : std::to_string(ns / 1'000'000'000) + " s";
}

/// True if nearly all events that take time have a twin, by one in sixty-four moments, which twins share.
bool stands_twice(const Columns& columns) {
  struct Key {
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint32_t lane = 0;
    Names::Id name = 0;

    auto operator<=>(const Key&) const = default;
  };
  constexpr std::uint64_t kSpread = 0x9fb21c651e98df25ULL;
  constexpr int kOneOf64 = 58;
  constexpr std::size_t kFewest = 16;
  std::vector<Key> keys;
  const bool all = columns.size() < 64 * kFewest * 2;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] != 'X' || columns.duration_ns[row] == 0) continue;
    if (all || static_cast<std::uint64_t>(columns.start_ns[row]) * kSpread >> kOneOf64 == 0)
      keys.push_back({columns.start_ns[row], columns.duration_ns[row], columns.lane[row], columns.name[row]});
  }
  if (keys.size() < kFewest) return false;
  std::sort(keys.begin(), keys.end());
  std::size_t twins = 0;
  for (std::size_t i = 1; i < keys.size(); ++i) twins += keys[i] == keys[i - 1] ? 1 : 0;
  constexpr double kNearlyHalf = 0.45;
  return static_cast<double>(twins) > kNearlyHalf * static_cast<double>(keys.size());
}

/// How many processes marked steps of the profiler.
std::size_t stepping_processes(const Trace& trace) {
  const Columns& columns = trace.columns();
  std::set<std::string_view> processes;
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == EventKind::annotation && columns.name_of(row).starts_with("ProfilerStep#"))
      processes.insert(columns.lanes[columns.lane[row]].process);
  }
  return processes.size();
}

/// Remarks for its reader, before the figures.
void add_remarks(Trace& trace) {
  std::vector<std::string>& remarks = trace.file.notes.remarks;
  if (trace.clock_gap_ns != 0) {
    const bool early = trace.clock_gap_ns < 0;
    remarks.push_back("the device's clock is not the host's: work begins " +
                      span_text(std::abs(trace.clock_gap_ns)) + (early ? " before" : " after") +
                      " it is launched; no figures of steps are made across both");
  }
  if (stands_twice(trace.columns()))
    remarks.emplace_back("the events stand in the file twice: sums of times count both, unions of times one");
  if (!trace.steps.found_by().empty())
    remarks.push_back("no ProfilerStep: the " + std::to_string(trace.steps.all().size()) + " ranges \"" +
                      trace.steps.found_by() + "\" count as steps");
  if (const std::size_t processes = stepping_processes(trace); processes > 1)
    remarks.push_back("steps are marked in " + std::to_string(processes) +
                      " processes: figures by step mix them; write a file for each rank");
  constexpr double kWorthSaying = 0.05;  // of the trace: shorter waits explain little of it
  std::int64_t waited_ns = 0;
  for (const Row row : waits_for_older_work(trace))
    waited_ns = std::max(waited_ns, trace.columns().duration_ns[row]);
  if (static_cast<double>(waited_ns) > kWorthSaying * static_cast<double>(length_ns(trace)))
    remarks.push_back(
        "the host waited " + span_text(waited_ns) +
        " for work that is older than the recording; what the device did then is not in the file");
  if (!trace.device_rows.empty()) return;
  std::size_t launches = 0;
  for (Row row = 0; row < trace.columns().size(); ++row) {
    launches += trace.kinds[row] == EventKind::runtime &&
                trace.columns().name_of(row).find("Launch") != std::string_view::npos;
  }
  if (launches > 0 && trace.file.notes.skipped() == 0 && !trace.file.notes.cut)
    remarks.push_back(std::to_string(launches) +
                      " launches, but no work on a device: the vendor's tracing (CUPTI, " +
                      "roctracer; --kernel-trace of rocprofv3) did not run, because it was not asked for, "
                      "another profiler " +
                      "held it or its permission was missing");
}

}  // namespace

std::int64_t length_ns(const Trace& trace) noexcept {
  const Columns& columns = trace.columns();
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] != 'X') continue;
    first = std::min(first, columns.start_ns[row]);
    last = std::max(last, columns.end_ns(row));
  }
  return last < first ? 0 : last - first;
}

std::optional<std::int64_t> first_launch_ns(const Trace& trace) noexcept {
  std::optional<std::int64_t> first;
  for (const Row row : trace.device_rows) {
    // Times of the host say nothing about a device with a clock of its own.
    const Row launch = trace.clock_gap_ns != 0 ? kNoRow : trace.correlation.launch_of(row);
    const std::int64_t at_ns = trace.columns().start_ns[launch == kNoRow ? row : launch];
    first = std::min(first.value_or(at_ns), at_ns);
  }
  return first;
}

std::vector<Row> waits_for_older_work(const Trace& trace) {
  std::vector<Row> waits;
  const std::optional<std::int64_t> first_ns = first_launch_ns(trace);
  const Columns& columns = trace.columns();
  for (Row row = 0; first_ns && trace.clock_gap_ns == 0 && row < columns.size(); ++row) {
    if (trace.kinds[row] == EventKind::runtime && columns.end_ns(row) <= *first_ns &&
        waits_for_device(columns.name_of(row)))
      waits.push_back(row);
  }
  return waits;
}

Trace resolve(TraceFile file) {
  Trace trace;
  trace.file = std::move(file);
  trace.rank = trace.file.rank.value_or(0);
  trace.kinds = kinds_of(trace.columns());
  trace.device_rows = device_rows_of(trace.columns(), trace.kinds);
  trace.correlation = Correlation(trace.columns(), trace.kinds);
  trace.calls =
      CallStack(trace.columns(), trace.kinds, handovers_of(trace.columns(), trace.kinds, trace.correlation));
  trace.steps = Steps(trace.columns(), trace.kinds, trace.correlation, trace.calls);
  trace.clock_gap_ns = trace.correlation.clock_gap_ns(trace.columns());
  add_remarks(trace);
  return trace;
}

Trace load_trace(const std::string& path, const ReadOptions& options) {
  return resolve(read_file(path, options));
}

void arrange_by_rank(std::vector<Trace>& traces) {
  std::set<std::int64_t> taken;
  for (const Trace& trace : traces) {
    if (trace.file.rank) taken.insert(*trace.file.rank);
  }
  std::int64_t next = 0;
  for (Trace& trace : traces) {
    if (trace.file.rank) continue;
    while (taken.contains(next)) ++next;
    trace.rank = next++;
  }
  std::stable_sort(traces.begin(), traces.end(),
                   [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
}

namespace {

/// On Unix time where the file says it.
std::pair<std::int64_t, std::int64_t> recorded_span(const Trace& trace) {
  const std::int64_t base_ns = trace.file.base_time_ns.value_or(0);
  std::pair span(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min());
  for (Row row = 0; row < trace.columns().size(); ++row) {
    if (trace.columns().phase[row] != 'X') continue;
    span.first = std::min(span.first, trace.columns().start_ns[row] + base_ns);
    span.second = std::max(span.second, trace.columns().end_ns(row) + base_ns);
  }
  return span;
}

/// Files of runs that follow each other are no ranks of one.
void note_separate_runs(std::vector<Trace>& traces) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const Trace& trace : traces) {
    if (trace.file.rank || trace.columns().size() == 0) return;
    if (trace.file.base_time_ns.has_value() != traces.front().file.base_time_ns.has_value()) return;
    spans.push_back(recorded_span(trace));
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first <= spans[i - 1].second) return;
  }
  if (spans.size() < 2) return;
  for (Trace& trace : traces) trace.is_run_of_its_own = true;
  traces.front().file.notes.remarks.push_back(
      "the " + std::to_string(spans.size()) +
      " traces were recorded one after the other and do not say their rank: they " +
      "look like runs of their own, not like ranks of one; name one file to read it alone");
}

}  // namespace

std::vector<Trace> load_traces(const std::vector<std::string>& paths, const ReadOptions& options,
                               const std::vector<std::int64_t>& ranks) {
  std::vector<std::vector<Trace>> by_file(paths.size());
  for_each_parallel(paths.size(), [&](std::size_t i) {
    for (TraceFile& file : read_traces(paths[i], options)) by_file[i].push_back(resolve(std::move(file)));
  });
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (i < ranks.size() && by_file[i].size() == 1)
      by_file[i][0].rank = *(by_file[i][0].file.rank = ranks[i]);
    std::move(by_file[i].begin(), by_file[i].end(), std::back_inserter(traces));
  }
  arrange_by_rank(traces);
  if (ranks.empty()) note_separate_runs(traces);
  return traces;
}

}  // namespace headrace::trace
