// The work that all contenders do: threads that put and threads that get, started together.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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
  if (sum == items * (items - 1) / 2) return;
  std::fprintf(stderr, "items were lost or doubled\n");
  std::exit(1);
}

inline constexpr auto kNothingBefore = [] {};

/// `put(number)` and `get()` move one item each, however long that takes. The numbers 0..items-1 are dealt to
/// the producers in turn; each consumer takes its share of the count. Each thread calls `before` ahead of the
/// start.
template <class Put, class Get, class Before = decltype(kNothingBefore)>
double transfer(Crowd crowd, std::uint64_t items, Put&& put, Get&& get, Before&& before = Before()) {
  using Clock = std::chrono::steady_clock;
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
  const auto begin = Clock::now();
  go.store(true);
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  expect_sum(sum.load(), items);
  return took.count() / static_cast<double>(items);
}

/// One thread that puts and gets by turns: what the calls cost when nobody contends.
template <class Put, class Get>
double alone(std::uint64_t items, Put&& put, Get&& get) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sum = 0;
  for (std::uint64_t item = 0; item < items; ++item) {
    put(item);
    sum += get();
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  expect_sum(sum, items);
  return took.count() / static_cast<double>(items);
}

}  // namespace headrace::bench
