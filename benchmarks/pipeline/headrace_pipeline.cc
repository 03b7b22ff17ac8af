// source -> map -> batch -> sink, everything recorded; and with recording switched off.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/pipeline/pipeline.h"
#include "headrace/profile/current.h"
#include "work.h"

namespace headrace::bench {
namespace {

namespace pl = headrace::pipeline;

auto build(bool ordered) {
  return pl::generator<std::int64_t>("count",
                                     [](const pl::Shard&) -> pl::ItemMaker<std::int64_t> {
                                       return
                                           [at = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
                                             if (at == kItems) return std::nullopt;
                                             return at++;
                                           };
                                     })
      .map("increment", [](std::int64_t item) { return item + 1; }, {.ordered = ordered, .capacity = 1024})
      .batch(kBatch, pl::BatchOptions{.capacity = 64});
}

void headrace_pipeline(benchmark::State& state) {
  auto pipeline = build(state.range(0) != 0);
  for (auto _ : state) {
    std::int64_t sum = 0;
    while (const auto batch = pipeline.next()) {
      for (const std::int64_t item : *batch) sum += item;
    }
    expect_sum(sum);
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}
BENCHMARK(headrace_pipeline)
    ->ArgName("ordered")
    ->Arg(1)
    ->Arg(0)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace::bench
