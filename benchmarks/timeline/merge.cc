// A trace of 200 MB merged with a run (bar: <= 2 x the time of reading the trace), beside reading it alone.
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

#include "headrace/profile/current.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/session.h"
#include "headrace/timeline/merge.h"
#include "headrace/trace/reader.h"
#include "scratch_file.h"
#include "trace/large_trace.h"

namespace {

using headrace::bench::ScratchFile;
namespace profile = headrace::profile;

/// The large trace as a file, and a run with a loop of a thousand steps.
struct Inputs {
  ScratchFile trace{"trace.json.gz"};
  ScratchFile run{"run"};

  Inputs() {
    const std::string& gzip = headrace::bench::large_trace().gzip;
    std::ofstream(trace.path(), std::ios::binary)
        .write(gzip.data(), static_cast<std::streamsize>(gzip.size()));
    const auto session = profile::Session::open({run.path(), 0});
    profile::CurrentSession::set(session);
    profile::LoopRecorder loop(std::make_shared<profile::LoaderHandle>(session, "train", nullptr));
    for (int step = 0; step < 1000; ++step) {
      loop.begin_wait();
      loop.end_wait(true, false);
    }
    loop.end_loop();
    profile::CurrentSession::set(nullptr);
    session->close();
  }
};
const Inputs& inputs() {
  static const Inputs instance;
  return instance;
}

void count(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(headrace::bench::large_trace().json.size()));
}

void read_alone(benchmark::State& state) {
  for (auto _ : state) {
    const auto file = headrace::trace::read_file(inputs().trace.path());
    if (!file.notes.clean()) state.SkipWithError("not the whole trace");
  }
  count(state);
}

void headrace_merge(benchmark::State& state) {
  const ScratchFile out("merged.json.gz");
  for (auto _ : state) {
    const auto merged = headrace::timeline::merge({.segments = {inputs().run.path() + "/rank0.hrseg"},
                                                   .traces = {inputs().trace.path()},
                                                   .out = out.path()});
    if (merged.slices == 0) state.SkipWithError("nothing of the run");
    state.counters["MB_out"] = static_cast<double>(merged.bytes) / 1e6;
  }
  count(state);
}

BENCHMARK(read_alone)
    ->Name("timeline/read_trace_alone")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(headrace_merge)
    ->Name("timeline/merge")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
