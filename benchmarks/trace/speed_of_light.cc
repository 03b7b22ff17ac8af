// What no reader can beat: inflating alone, and going once over the same text with simdjson without keeping
// anything.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <cstdint>
#include <vector>

#include "headrace/trace/byte_source.h"
#include "large_trace.h"

namespace {

using headrace::bench::large_trace;

void inflate_alone(benchmark::State& state) {
  std::vector<char> buffer(std::size_t{1} << 20);
  for (auto _ : state) {
    headrace::trace::MemoryBytes source(large_trace().gzip);
    headrace::trace::GzipStream stream(source, "large");
    std::size_t bytes = 0;
    while (const std::size_t read = stream.read(buffer)) bytes += read;
    if (bytes != large_trace().json.size()) state.SkipWithError("bytes are missing");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

/// The whole file at once, durations and correlations summed: no columns, no names, no windows. The memory
/// for the whole text and its index is what a reader of any size of file does not have.
void simdjson_alone(benchmark::State& state) {
  namespace ondemand = simdjson::ondemand;
  const simdjson::padded_string text(large_trace().json);
  ondemand::parser parser;
  for (auto _ : state) {
    ondemand::document document = parser.iterate(text);
    headrace::bench::TraceTotals totals;
    for (ondemand::object event : document["traceEvents"]) {
      double duration = 0;
      if (event["dur"].get(duration)) continue;
      ++totals.complete;
      totals.duration_ns += static_cast<std::int64_t>(duration * 1000 + 0.5);
      std::int64_t correlation = 0;
      if (event["args"]["correlation"].get(correlation) == simdjson::SUCCESS)
        totals.correlation_sum += correlation;
    }
    if (totals != large_trace().totals) state.SkipWithError("wrong totals");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

BENCHMARK(inflate_alone)->Name("trace/speed_of_light/inflate")->Unit(benchmark::kMillisecond);
BENCHMARK(simdjson_alone)->Name("trace/speed_of_light/simdjson_on_demand")->Unit(benchmark::kMillisecond);

}  // namespace
