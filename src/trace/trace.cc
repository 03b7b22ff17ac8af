#include "headrace/trace/trace.h"

#include <algorithm>
#include <iterator>
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

}  // namespace

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
  return traces;
}

}  // namespace headrace::trace
