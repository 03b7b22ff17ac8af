// The speed of light: a bare clock read, and the same with three plain stores behind it.
#include "beside_clock.h"

namespace {

using headrace::metrics::Clock;

void clock_read(benchmark::State& state) {
  headrace::bench::beside_clock(state, [](int) { benchmark::DoNotOptimize(Clock::now_ns()); });
}
HEADRACE_BESIDE_CLOCK(clock_read, "clock_read");

void clock_read_and_stores(benchmark::State& state) {
  std::int64_t count = 0, at = 0, level = 0;
  headrace::bench::beside_clock(state, [&](int i) {
    at = Clock::now_ns();
    ++count;
    level = i;
    benchmark::DoNotOptimize(at);
    benchmark::DoNotOptimize(count);
    benchmark::DoNotOptimize(level);
  });
}
HEADRACE_BESIDE_CLOCK(clock_read_and_stores, "clock_read_and_stores");

}  // namespace
