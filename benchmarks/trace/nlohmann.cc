// A contender: nlohmann/json, the whole document as a tree, as most C++ tools read a trace.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "large_trace.h"

namespace {

using headrace::bench::large_trace;

void nlohmann_json(benchmark::State& state) {
  for (auto _ : state) {
    const nlohmann::json document = nlohmann::json::parse(large_trace().json);
    headrace::bench::TraceTotals totals;
    for (const nlohmann::json& event : document.at("traceEvents")) {
      if (event.at("ph").get_ref<const std::string&>() != "X") continue;
      ++totals.complete;
      totals.duration_ns += std::llround(event.at("dur").get<double>() * 1000);
      const nlohmann::json& arguments = event.at("args");
      const auto correlation = arguments.find("correlation");
      if (correlation != arguments.end()) totals.correlation_sum += correlation->get<std::int64_t>();
    }
    if (totals != large_trace().totals) state.SkipWithError("wrong totals");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large_trace().json.size()));
}

BENCHMARK(nlohmann_json)->Name("trace/nlohmann/json_to_tree")->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
