// Reading the events of an Ascend profile: bytes a second, and memory beside the columns.
//
//     python benchmarks/ascend/make_profile.py SAMPLE /tmp/large
//     HEADRACE_ASCEND_FILE=/tmp/large/ASCEND_PROFILER_OUTPUT/trace_view.json benchmarks/run.sh ascend
//
// Without HEADRACE_ASCEND_FILE (a trace_view.json or a database) there is nothing to read.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>

#include "headrace/trace/reader.h"

namespace {

std::size_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

void read_events(benchmark::State& state) {
  const char* file = std::getenv("HEADRACE_ASCEND_FILE");
  if (file == nullptr) {
    state.SkipWithError("HEADRACE_ASCEND_FILE is not set");
    return;
  }
  const std::size_t before = peak_bytes();
  std::size_t bytes = 0;
  std::size_t columns = 0;
  for (auto _ : state) {
    const headrace::trace::TraceFile read = headrace::trace::read_file(file);
    bytes += read.notes.bytes;
    columns = read.columns.bytes();
    state.counters["events"] = static_cast<double>(read.columns.size());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  const std::size_t peak = peak_bytes() - before;
  state.counters["MiB beside the columns"] =
      peak > columns ? static_cast<double>(peak - columns) / (1 << 20) : 0;
}
// Once: what a second reading finds in memory would hide what the first one took.
BENCHMARK(read_events)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
