// Writing the report of an hour with 64 workers (bars: page <= 300 ms and <= 1 MB, text <= 100 ms), beside
// its JSON, which holds the same figures without a thought about them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/report/json.h"
#include "headrace/report/page.h"
#include "headrace/report/text.h"
#include "long_run.h"

namespace {

/// Median over all iterations in ms, and the report's size.
template <class Write>
void measure(benchmark::State& state, Write&& write) {
  const headrace::profile::Profile profile = headrace::bench::long_run();
  const headrace::analysis::Diagnosis diagnosis = headrace::analysis::diagnose(profile);
  std::vector<double> ms;
  std::size_t size = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string report = write(profile, diagnosis);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    ms.push_back(took.count() * 1e3);
    size = report.size();
    if (report.find("Transform3") == std::string::npos) return state.SkipWithError("the operator is missing");
  }
  std::sort(ms.begin(), ms.end());
  state.counters["median_ms"] = ms[ms.size() / 2];
  state.counters["kB"] = static_cast<double>(size) / 1e3;
}

void json(benchmark::State& state) {
  measure(state, [](const auto& profile, const auto& diagnosis) {
    return headrace::report::to_json(profile, diagnosis, -1);
  });
}

void text(benchmark::State& state) {
  measure(state, [](const auto& profile, const auto& diagnosis) {
    return headrace::report::to_text(profile, diagnosis);
  });
}

void page(benchmark::State& state) {
  measure(state, [](const auto& profile, const auto& diagnosis) {
    return headrace::report::page_json(profile, diagnosis);
  });
}

BENCHMARK(json)->Name("report/json")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(text)->Name("report/text")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(page)->Name("report/page")->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
