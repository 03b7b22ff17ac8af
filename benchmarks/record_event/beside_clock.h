// Measures a contender beside a bare clock read, in turns, so that both see the same machine.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "headrace/metrics/clock.h"

namespace headrace::bench {

inline constexpr int kBlock = 4096;
/// Blocks of each side per pass.
inline constexpr int kTurns = 64;

template <class Body>
double ns_per_call(Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kBlock; ++i) body(i);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kBlock;
}

inline double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Runs `body(i)` in turns with a clock read. Reported: ns (median of the contender), clock_ns (median of the
/// clock read), ratio (of the two: the bar).
template <class Body>
void beside_clock(benchmark::State& state, Body&& body) {
  metrics::Clock::calibrate();
  std::vector<double> contender;
  std::vector<double> clock;
  for (auto _ : state) {
    double spent = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      clock.push_back(ns_per_call([](int) { benchmark::DoNotOptimize(metrics::Clock::now_ns()); }));
      contender.push_back(ns_per_call(body));
      spent += contender.back() * kBlock;
    }
    state.SetIterationTime(spent * 1e-9);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kTurns * kBlock);
  const double ns = median(contender);
  const double clock_ns = median(clock);
  state.counters["ns"] = ns;
  state.counters["clock_ns"] = clock_ns;
  state.counters["ratio"] = ns / clock_ns;
}

}  // namespace headrace::bench

/// `function(benchmark::State&)` under a name that says what it is.
#define HEADRACE_BESIDE_CLOCK(function, name) \
  BENCHMARK(function)                         \
      ->Name("record_event/" name)            \
      ->UseManualTime()                       \
      ->Unit(benchmark::kMicrosecond)         \
      ->MinTime(0.5)
