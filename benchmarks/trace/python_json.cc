// A contender: Python's json module, which is what Python tools read a trace with. Timed inside Python,
// without its start-up.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "large_trace.h"

namespace {

using headrace::bench::large_trace;

constexpr const char* kProgram = R"(
import json, sys, time
begin = time.perf_counter()
with open(sys.argv[1], 'rb') as file:
    events = json.load(file)['traceEvents']
rows = [e for e in events if e['ph'] == 'X']
duration_ns = sum(round(e['dur'] * 1000) for e in rows)
correlations = sum(e['args'].get('correlation', 0) for e in rows)
print(time.perf_counter() - begin, len(rows), duration_ns, correlations)
)";

void python_json(benchmark::State& state) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "headrace_bench_trace.json";
  std::ofstream(path, std::ios::binary) << large_trace().json;
  const std::string command = std::string("python3 -c \"") + kProgram + "\" " + path.string();
  for (auto _ : state) {
    std::FILE* python = popen(command.c_str(), "r");
    double seconds = 0;
    long long complete = 0;
    long long duration_ns = 0;
    long long correlations = 0;
    const int fields =
        std::fscanf(python, "%lf %lld %lld %lld", &seconds, &complete, &duration_ns, &correlations);
    pclose(python);
    const headrace::bench::TraceTotals totals{static_cast<std::size_t>(complete), duration_ns, correlations};
    if (fields != 4 || totals != large_trace().totals) {
      state.SkipWithError("no python3, or wrong totals");
      break;
    }
    state.SetIterationTime(seconds);
  }
  std::filesystem::remove(path);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

BENCHMARK(python_json)
    ->Name("trace/python_json/json_to_objects")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1)
    ->UseManualTime();

}  // namespace
