// One recorded event: counter, latency histogram and time-weighted occupancy, one clock read (bar: ratio
// <= 1.6).
#include "beside_clock.h"
#include "cells.h"

namespace {

using headrace::metrics::Clock;

void queue_event(benchmark::State& state) {
  auto& cells = headrace::bench::Cells::make();
  headrace::metrics::QueueProbe probe(&cells.queue, cells.bins, &cells.clock, cells.levels());
  const std::uint64_t before = cells.queue.puts.load();
  headrace::bench::beside_clock(state, [&](int i) {
    const std::int64_t now = Clock::now_ns();
    probe.changed(i & 63, now);
    probe.put(i & 1023, now, true);
  });
  if (cells.queue.puts.load() - before != static_cast<std::uint64_t>(state.items_processed())) {
    state.SkipWithError("events were lost");
  }
}
HEADRACE_BESIDE_CLOCK(queue_event, "queue_event");

void queue_event_unbound(benchmark::State& state) {
  headrace::metrics::QueueProbe probe;
  benchmark::DoNotOptimize(probe);
  headrace::bench::beside_clock(state, [&](int i) {
    if (probe.bound()) {
      const std::int64_t now = Clock::now_ns();
      probe.changed(i & 63, now);
      probe.put(i & 1023, now, true);
    }
    benchmark::ClobberMemory();
  });
}
HEADRACE_BESIDE_CLOCK(queue_event_unbound, "queue_event_disabled");

}  // namespace
