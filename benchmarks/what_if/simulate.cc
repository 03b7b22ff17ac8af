// Asking "what if" of a recorded run (bars: one run of 1,000 batches <= 5 ms, the whole search <= 300 ms),
// beside the events of such a run alone.
#include <benchmark/benchmark.h>

#include <cmath>

#include "headrace/analysis/simulate/engine.h"
#include "headrace/analysis/simulate/network_run.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/what_if/what_if.h"
#include "recorded.h"

namespace {

using headrace::profile::Profile;
namespace analysis = headrace::analysis;

constexpr int kBatches = 1000;
constexpr int kOperators = 8;

/// The recorded step is what the run must come to.
void check(benchmark::State& state, const Profile& profile, double step_s) {
  if (std::abs(step_s / profile.sink.step_s - 1) > 0.05) state.SkipWithError("the run is not reproduced");
}

void events(benchmark::State& state) {
  for (auto _ : state) {
    analysis::Engine engine(16);
    for (int actor = 0; actor < 16; ++actor) engine.sleep(actor, 0.001 * (1 + actor % 5));
    for (int event = 0; event < kBatches * kOperators; ++event) engine.sleep(engine.next(), 0.012);
    benchmark::DoNotOptimize(engine.now());
  }
}

void run(benchmark::State& state, const Profile& profile) {
  analysis::Network network;
  analysis::make_network(profile, {}, false, 1, network);
  for (auto _ : state) check(state, profile, analysis::simulate(network, kBatches, 0).step_s);
}

void queues_run(benchmark::State& state) { run(state, headrace::bench::recorded_pipeline()); }
void window_run(benchmark::State& state) { run(state, headrace::bench::recorded_loader()); }

void pipeline_what_if(benchmark::State& state) {
  const Profile profile = headrace::bench::recorded_pipeline();
  for (auto _ : state) {
    if (analysis::what_if(profile, {{"op3.workers", "4"}}).bottleneck.empty())
      state.SkipWithError("no answer");
  }
}

void loader_what_if(benchmark::State& state) {
  const Profile profile = headrace::bench::recorded_loader();
  for (auto _ : state) {
    if (analysis::what_if(profile, {{"num_workers", "24"}}).bottleneck.empty())
      state.SkipWithError("no answer");
  }
}

void pipeline_search(benchmark::State& state) {
  const Profile profile = headrace::bench::recorded_pipeline();
  for (auto _ : state) {
    if (analysis::diagnose(profile).advice.empty()) state.SkipWithError("no advice");
  }
}

void loader_search(benchmark::State& state) {
  const Profile profile = headrace::bench::recorded_loader();
  for (auto _ : state) {
    if (analysis::diagnose(profile).advice.empty()) state.SkipWithError("no advice");
  }
}

BENCHMARK(events)->Name("what_if/events_alone")->Unit(benchmark::kMillisecond);
BENCHMARK(queues_run)->Name("what_if/pipeline_1000_batches")->Unit(benchmark::kMillisecond);
BENCHMARK(window_run)->Name("what_if/loader_1000_batches")->Unit(benchmark::kMillisecond);
BENCHMARK(pipeline_what_if)->Name("what_if/pipeline_question")->Unit(benchmark::kMillisecond);
BENCHMARK(loader_what_if)->Name("what_if/loader_question")->Unit(benchmark::kMillisecond);
BENCHMARK(pipeline_search)->Name("what_if/pipeline_diagnosis_with_search")->Unit(benchmark::kMillisecond);
BENCHMARK(loader_search)->Name("what_if/loader_diagnosis_with_search")->Unit(benchmark::kMillisecond);

}  // namespace
