// The same stages as a oneTBB parallel_pipeline.
#include <benchmark/benchmark.h>
#include <oneapi/tbb/parallel_pipeline.h>

#include <cstdint>
#include <vector>

#include "work.h"

namespace headrace::bench {
namespace {

void tbb_pipeline(benchmark::State& state) {
  for (auto _ : state) {
    std::int64_t sum = 0;
    std::int64_t at = 0;
    std::vector<std::int64_t> batch;
    tbb::parallel_pipeline(
        1024,
        tbb::make_filter<void, std::int64_t>(tbb::filter_mode::serial_in_order,
                                             [&](tbb::flow_control& control) -> std::int64_t {
                                               if (at == kItems) control.stop();
                                               return at++;
                                             }) &
            tbb::make_filter<std::int64_t, std::int64_t>(tbb::filter_mode::serial_in_order,
                                                         [](std::int64_t item) { return item + 1; }) &
            tbb::make_filter<std::int64_t, void>(tbb::filter_mode::serial_in_order, [&](std::int64_t item) {
              batch.push_back(item);
              if (static_cast<std::int64_t>(batch.size()) < kBatch) return;
              for (const std::int64_t one : batch) sum += one;
              batch.clear();
            }));
    for (const std::int64_t one : batch) sum += one;
    expect_sum(sum);
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}
BENCHMARK(tbb_pipeline)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace::bench
