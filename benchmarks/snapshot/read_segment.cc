// Reading a run's live segment by pread (bar: median <= 1 ms), and what else a live report costs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/snapshot.h"
#include "live_run.h"

namespace {

using headrace::profile::SegmentImage;

/// Median and 90th percentile over all iterations, in ms.
template <class Body>
void measure(benchmark::State& state, Body&& body) {
  std::vector<double> ms;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    ms.push_back(took.count() * 1e3);
  }
  std::sort(ms.begin(), ms.end());
  state.counters["median_ms"] = ms[ms.size() / 2];
  state.counters["p90_ms"] = ms[ms.size() * 9 / 10];
}

bool complete(const SegmentImage& image) {
  constexpr auto kLive = static_cast<std::uint32_t>(headrace::metrics::WorkerLife::live);
  const auto live =
      std::ranges::count_if(image.workers(), [](const auto& worker) { return worker.life.load() == kLive; });
  const auto owned =
      std::ranges::count_if(image.cells(), [](const auto& cell) { return cell.owner.load() != 0; });
  return live == headrace::bench::kWorkers &&
         owned == headrace::bench::kWorkers * headrace::bench::kOperators;
}

void read_file(benchmark::State& state, bool busy) {
  const headrace::bench::LiveRun run(busy);
  if (run.path().empty()) return state.SkipWithError("no shared memory");
  SegmentImage image;
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t calls = run.calls();
  measure(state, [&] { image.read_file(run.path()); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  // The writers were not held up: they go on at their own pace.
  state.counters["writer_calls_per_s"] = static_cast<double>(run.calls() - calls) / took.count();
  if (!complete(image)) state.SkipWithError("the image is not complete");
}

/// What a command that reads once pays: the image's memory is new.
void read_file_once(benchmark::State& state) {
  const headrace::bench::LiveRun run(false);
  if (run.path().empty()) return state.SkipWithError("no shared memory");
  measure(state, [&] {
    SegmentImage image;
    image.read_file(run.path());
    benchmark::DoNotOptimize(image);
  });
}

void figures(benchmark::State& state) {
  const headrace::bench::LiveRun run(false);
  SegmentImage image;
  image.read_file(run.path());
  measure(state, [&] { benchmark::DoNotOptimize(headrace::profile::SegmentFigures::of(image, 0)); });
}

void profile(benchmark::State& state) {
  const headrace::bench::LiveRun run(false);
  SegmentImage image;
  image.read_file(run.path());
  measure(state, [&] { benchmark::DoNotOptimize(headrace::profile::read_profile(image, 0)); });
}

BENCHMARK_CAPTURE(read_file, quiet, false)
    ->Name("snapshot/read_file/quiet")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_file, writing, true)
    ->Name("snapshot/read_file/writing")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(read_file_once)->Name("snapshot/read_file/once")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(figures)->Name("snapshot/figures")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(profile)->Name("snapshot/profile")->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
