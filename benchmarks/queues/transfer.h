// The work that all contenders do: threads that put and threads that get, started together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "contest.h"

namespace headrace::bench {

/// Tries until it succeeds: 200 pauses between tries, then the core goes to somebody else.
template <class Try>
void insist(Try&& attempt) {
  for (int tries = 0; !attempt(); ++tries) {
    if (tries < 200) {
#if defined(__x86_64__)
      _mm_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }
}

inline void expect_sum(std::uint64_t sum, std::uint64_t items) {
  const auto off = static_cast<std::int64_t>(sum - items * (items - 1) / 2);
  if (off != 0)
    throw std::runtime_error("items were lost or doubled: their sum is off by " + std::to_string(off));
}

inline constexpr auto kNothingBefore = [] {};

/// From its making on.
class Stopwatch {
 public:
  Took took(std::uint64_t items, int threads) const {
    const double wall_ns = read_ns(CLOCK_MONOTONIC) - wall_ns_;
    return {wall_ns / static_cast<double>(items), threads,
            (read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns_) / wall_ns};
  }

 private:
  static double read_ns(clockid_t id) {
    timespec time{};
    clock_gettime(id, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }
  const double wall_ns_ = read_ns(CLOCK_MONOTONIC);
  const double cpu_ns_ = read_ns(CLOCK_PROCESS_CPUTIME_ID);
};

/// `put(number)` and `get()` move one item each, however long that takes. The numbers 0..items-1 are dealt to
/// the producers in turn; each consumer takes its share of the count. Each thread calls `before` ahead of the
/// start.
template <class Put, class Get, class Before = decltype(kNothingBefore)>
Took transfer(Crowd crowd, std::uint64_t items, Put&& put, Get&& get, Before&& before = Before()) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> threads;
  const auto wait_for_start = [&] {
    before();
    ready.fetch_add(1);
    while (!go.load()) std::this_thread::yield();
  };
  const auto producers = static_cast<std::uint64_t>(crowd.producers);
  const auto consumers = static_cast<std::uint64_t>(crowd.consumers);
  for (std::uint64_t i = 0; i < producers; ++i) {
    threads.emplace_back([&, i] {
      wait_for_start();
      for (std::uint64_t item = i; item < items; item += producers) put(item);
    });
  }
  for (std::uint64_t i = 0; i < consumers; ++i) {
    threads.emplace_back([&, i] {
      wait_for_start();
      std::uint64_t own = 0;
      for (std::uint64_t left = items / consumers + (i < items % consumers ? 1 : 0); left > 0; --left)
        own += get();
      sum.fetch_add(own);
    });
  }
  while (ready.load() < crowd.producers + crowd.consumers) std::this_thread::yield();
  const Stopwatch stopwatch;
  go.store(true);
  for (auto& thread : threads) thread.join();
  const Took took = stopwatch.took(items, crowd.producers + crowd.consumers);
  expect_sum(sum.load(), items);
  return took;
}

/// One thread that puts and gets by turns: what the calls cost when nobody contends.
template <class Put, class Get>
Took alone(std::uint64_t items, Put&& put, Get&& get) {
  const Stopwatch stopwatch;
  std::uint64_t sum = 0;
  for (std::uint64_t item = 0; item < items; ++item) {
    put(item);
    sum += get();
  }
  const Took took = stopwatch.took(items, 1);
  expect_sum(sum, items);
  return took;
}

}  // namespace headrace::bench
