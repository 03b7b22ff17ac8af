// A thread that copies batches to the device beside a consumer that works: the step against the longer of the
// two alone. 1.00 is full overlap; copy and work one after the other would be their sum. A consumer that
// computes on a core needs one of its own, and a machine that is quiet.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "batches.h"
#include "headrace/queues/blocking_queue.h"
#include "headrace/transport/host_device.h"

namespace headrace::benchmarks {
namespace {

constexpr auto kNever = queues::EventCount::Clock::time_point::max();
constexpr std::uint64_t kBatches = 60;

struct Item {
  std::uint64_t number = 0;
  transport::Block block;
  transport::Completion completion;
};
using Queue = queues::BlockingQueue<Item>;

/// Who uses the batches: a device, while the host's thread waits for it, or the host's own core.
enum class Consumer { device, core };

void work(Consumer consumer, double seconds) {
  const double until = now_s() + seconds;
  if (consumer == Consumer::device) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    return;
  }
  // Takes nothing from memory.
  std::uint64_t value = 1;
  while (now_s() < until) {
    for (int i = 0; i < 2000; ++i) value = value * 6364136223846793005U + 1;
    benchmark::DoNotOptimize(value);
  }
}

Item copied(transport::Device& device, const Blocks& source, std::uint64_t number) {
  mark(source[0], number);
  const transport::HostBytes batch[] = {{source[0], kBatchBytes}};
  transport::Acquired acquired = device.acquire(kBatchBytes);
  const transport::Copied copied = device.copy(batch, acquired.block);
  return {number, std::move(acquired.block), copied.completion};
}

void copy_all(transport::Device& device, const Blocks& source, Queue& queue) {
  for (std::uint64_t number = 1; number <= kBatches; ++number) {
    Item item = copied(device, source, number);
    while (queue.try_put(item, 0, 0) == queues::QueueStatus::not_now) queue.wait_not_full(kNever);
  }
}

/// Seconds per batch, the first one left out.
double step_of_pipeline(transport::Device& device, const Blocks& source, Consumer consumer, double work_s) {
  Queue queue(2);
  std::thread copier([&] { copy_all(device, source, queue); });
  double began = 0;
  for (std::uint64_t number = 1; number <= kBatches; ++number) {
    std::optional<Item> item;
    while (queue.try_get(item, 0, 0) == queues::QueueStatus::not_now) queue.wait_not_empty(kNever);
    item->completion.wait();
    check(item->block.data(), item->number);
    work(consumer, work_s);
    if (number == 1) began = now_s();
  }
  const double took = now_s() - began;
  copier.join();
  return took / static_cast<double>(kBatches - 1);
}

double copy_alone(transport::Device& device, const Blocks& source) {
  std::vector<double> seconds;
  for (int i = 0; i < 20; ++i) {
    const double began = now_s();
    copied(device, source, 1);
    seconds.push_back(now_s() - began);
  }
  return median(std::move(seconds));
}

/// Argument: the consumer's work in percent of a copy. Copy alone, then the pipeline, in turn; medians over
/// the rounds. `bandwidth` 0: as fast as memory is.
void overlap(benchmark::State& state, Consumer consumer, double bandwidth) {
  const Blocks source(1);
  transport::DeviceOptions options{.buffers = 4, .buffer_bytes = kBatchBytes};
  if (bandwidth > 0) options.bandwidth = bandwidth;
  transport::HostDevice device(options);
  std::vector<double> copies_s;
  std::vector<double> steps_s;
  std::vector<double> of_longer;
  std::vector<double> of_sum;
  for (auto _ : state) {
    const double copy_s = copy_alone(device, source);
    const double work_s = copy_s * static_cast<double>(state.range(0)) / 100;
    const double step_s = step_of_pipeline(device, source, consumer, work_s);
    copies_s.push_back(copy_s);
    steps_s.push_back(step_s);
    of_longer.push_back(step_s / std::max(copy_s, work_s));
    of_sum.push_back(step_s / (copy_s + work_s));
  }
  state.counters["copy_ms"] = median(copies_s) * 1e3;
  state.counters["step_ms"] = median(steps_s) * 1e3;
  state.counters["of_longer"] = median(of_longer);
  state.counters["of_sum"] = median(of_sum);
}
void as_usual(benchmark::internal::Benchmark* benchmark) { benchmark->Iterations(5)->UseRealTime(); }

BENCHMARK_CAPTURE(overlap, device_waits, Consumer::device, 0)->Arg(50)->Arg(100)->Arg(200)->Apply(as_usual);
BENCHMARK_CAPTURE(overlap, core_computes, Consumer::core, 0)->Arg(100)->Arg(200)->Apply(as_usual);
BENCHMARK_CAPTURE(overlap, device_on_4_GB_a_second, Consumer::device, 4e9)
    ->Arg(100)
    ->Arg(200)
    ->Apply(as_usual);

}  // namespace
}  // namespace headrace::benchmarks
