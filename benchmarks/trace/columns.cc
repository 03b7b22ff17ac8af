// This project's reader: gzip to columns, arguments included (bar: >= 500 MB/s of JSON on one core), and its
// parts.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string_view>

#include "headrace/trace/event_boundaries.h"
#include "headrace/trace/reader.h"
#include "headrace/trace/trace.h"
#include "large_trace.h"

namespace {

using headrace::bench::large_trace;
namespace trace = headrace::trace;

headrace::bench::TraceTotals totals_of(const trace::Columns& columns) {
  headrace::bench::TraceTotals totals;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    totals.complete += columns.phase[row] == 'X';
    totals.duration_ns += columns.duration_ns[row];
    if (columns.correlation[row] != trace::kAbsent) totals.correlation_sum += columns.correlation[row];
  }
  return totals;
}

void read(benchmark::State& state, std::string_view bytes) {
  for (auto _ : state) {
    trace::MemoryBytes source(bytes);
    const trace::TraceFile file = trace::read_source(source, "large");
    if (totals_of(file.columns) != large_trace().totals || !file.notes.clean())
      state.SkipWithError("wrong columns");
    state.counters["columns_MB"] = static_cast<double>(file.columns.bytes()) / 1e6;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

void headrace_gzip(benchmark::State& state) { read(state, large_trace().gzip); }
void headrace_json(benchmark::State& state) { read(state, large_trace().json); }

void headrace_resolve(benchmark::State& state) {
  trace::MemoryBytes source(large_trace().json);
  const trace::TraceFile file = trace::read_source(source, "large");
  for (auto _ : state) {
    state.PauseTiming();
    trace::TraceFile copy = file;
    state.ResumeTiming();
    const trace::Trace resolved = trace::resolve(std::move(copy));
    if (resolved.correlation.without_launch() != 0) state.SkipWithError("launches are missing");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

void boundary_scan(benchmark::State& state) {
  std::string_view events = large_trace().json;
  events.remove_prefix(events.find("\"traceEvents\": [") + 16);
  for (auto _ : state) {
    trace::EventBoundaries boundaries;
    if (boundaries.scan(events).events <= large_trace().totals.complete)
      state.SkipWithError("events are missing");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

BENCHMARK(headrace_gzip)->Name("trace/headrace/gzip_to_columns")->Unit(benchmark::kMillisecond);
BENCHMARK(headrace_json)->Name("trace/headrace/json_to_columns")->Unit(benchmark::kMillisecond);
BENCHMARK(headrace_resolve)->Name("trace/headrace/resolve")->Unit(benchmark::kMillisecond);
BENCHMARK(boundary_scan)->Name("trace/headrace/boundary_scan_alone")->Unit(benchmark::kMillisecond);

}  // namespace
