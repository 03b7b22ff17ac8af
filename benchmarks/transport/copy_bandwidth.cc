// The host device's copy beside a bare memcpy into equal blocks, in turn: what the ring, the layout and the
// completion cost, and whether blocks are as good as memory can be. Bar: 0.9 of memcpy.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "batches.h"
#include "headrace/transport/host_device.h"

namespace headrace::benchmarks {
namespace {

constexpr std::size_t kBuffers = 4;

/// Arrays in one batch: 1 is an image tensor, 64 a batch that was not collated.
void copy_beside_memcpy(benchmark::State& state) {
  const auto arrays = static_cast<std::size_t>(state.range(0));
  const Blocks source(1);
  const Blocks bare(kBuffers);
  transport::HostDevice device({.buffers = kBuffers, .buffer_bytes = kBatchBytes});
  // Every buffer is used in turn, as a pipeline does that holds some: they are given back one round later.
  std::vector<transport::Block> held(kBuffers - 1);
  std::vector<transport::HostBytes> batch;
  for (std::size_t i = 0; i < arrays; ++i) {
    batch.emplace_back(source[0] + i * (kBatchBytes / arrays), kBatchBytes / arrays);
  }
  std::vector<double> bare_s;
  std::vector<double> device_s;
  std::vector<double> ratio;
  std::uint64_t number = 0;
  for (auto _ : state) {
    mark(source[0], ++number);
    const auto copy_bare = [&] {
      const double began = now_s();
      std::memcpy(bare[number], source[0], kBatchBytes);
      bare_s.push_back(now_s() - began);
      check(bare[number], number);
    };
    const auto copy_to_device = [&] {
      const double began = now_s();
      transport::Acquired acquired = device.acquire(transport::bytes_needed(batch));
      const transport::Copied copied = device.copy(batch, acquired.block);
      copied.completion.wait();
      device_s.push_back(now_s() - began);
      check(acquired.block.data(), number);
      held[number % held.size()] = std::move(acquired.block);
    };
    // Who comes first finds the source in the cache's worse state: they take turns.
    if (number % 2 == 0) {
      copy_bare();
      copy_to_device();
    } else {
      copy_to_device();
      copy_bare();
    }
    ratio.push_back(bare_s.back() / device_s.back());
  }
  const auto gigabytes = static_cast<double>(kBatchBytes) * 1e-9;
  state.counters["memcpy_GB/s"] = gigabytes / median(bare_s);
  state.counters["device_GB/s"] = gigabytes / median(device_s);
  state.counters["of_memcpy"] = median(ratio);
}
BENCHMARK(copy_beside_memcpy)->Arg(1)->Arg(64)->Iterations(60)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace headrace::benchmarks
