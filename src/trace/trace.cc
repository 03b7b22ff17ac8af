#include "headrace/trace/trace.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trace/parallel.h"

namespace headrace::trace {

Trace resolve(TraceFile file) {
  Trace trace;
  trace.file = std::move(file);
  trace.rank = trace.file.rank.value_or(0);
  trace.kinds = kinds_of(trace.columns());
  trace.correlation = Correlation(trace.columns(), trace.kinds);
  trace.calls = CallStack(trace.columns(), trace.kinds);
  trace.steps = Steps(trace.columns(), trace.kinds, trace.correlation);
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
  std::vector<Trace> traces(paths.size());
  for_each_parallel(paths.size(), [&](std::size_t i) { traces[i] = load_trace(paths[i], options); });
  for (std::size_t i = 0; i < std::min(ranks.size(), traces.size()); ++i) {
    traces[i].file.rank = ranks[i];
    traces[i].rank = ranks[i];
  }
  arrange_by_rank(traces);
  return traces;
}

}  // namespace headrace::trace
