#include "headrace/metrics/service_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

TEST(ServiceSequence, KeepsTheNewestInOrder) {
  Zeroed<ServiceSequence> sequence;
  for (std::uint64_t i = 0; i < 1000; ++i) sequence->add(i, static_cast<std::int64_t>(10 * i), static_cast<std::int64_t>(i));
  EXPECT_EQ(sequence->count.load(), 1000U);
  for (std::uint64_t i = 1000 - ServiceSequence::kLength; i < 1000; ++i) {
    const auto& sample = sequence->samples[i % ServiceSequence::kLength];
    EXPECT_EQ(sample.index.load(), i);
    EXPECT_EQ(sample.wall_ns.load(), static_cast<float>(10 * i));
    EXPECT_EQ(sample.cpu_ns.load(), static_cast<float>(i));
  }
}

TEST(ServiceSequence, TakesEverySlowItemAndBurstsOfFastOnes) {
  int fast = 0, slow = 0, longest_run = 0, run = 0;
  for (std::uint64_t item = 0; item < 5120; ++item) {
    slow += ServiceSequence::should_sample(item, 200'000) ? 1 : 0;
    const bool sampled = ServiceSequence::should_sample(item, 500);
    fast += sampled ? 1 : 0;
    run = sampled ? run + 1 : 0;
    longest_run = std::max(longest_run, run);
  }
  EXPECT_EQ(slow, 5120);
  EXPECT_EQ(fast, 80);
  EXPECT_EQ(longest_run, 8) << "consecutive, so that their order is seen";
}

TEST(SlowestItems, HoldTheSlowestWhateverTheOrder) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Zeroed<SlowestItems> slowest;
    std::vector<std::pair<std::int64_t, std::uint64_t>> all;
    const std::size_t count = random() % 40;
    for (std::uint64_t i = 0; i < count; ++i) {
      // Unequal times: which of two equal ones stays is not said.
      const auto ns = static_cast<std::int64_t>((random() % 1'000'000 + 1) * 64 + i);
      all.emplace_back(ns, i);
      slowest->add(i, ns);
    }
    std::sort(all.rbegin(), all.rend());
    all.resize(std::min<std::size_t>(all.size(), SlowestItems::kLength));
    std::vector<std::pair<std::int64_t, std::uint64_t>> held;
    for (const auto& item : slowest->items) {
      if (item.ns.load() > 0) held.emplace_back(item.ns.load(), item.index.load());
    }
    std::sort(held.rbegin(), held.rend());
    EXPECT_EQ(held, all);
  }
}

TEST(SlowestItems, ForgetWhenReset) {
  Zeroed<SlowestItems> slowest;
  for (std::uint64_t i = 0; i < 20; ++i) slowest->add(i, 1000 + static_cast<std::int64_t>(i));
  slowest->reset();
  slowest->add(7, 5);
  EXPECT_EQ(std::count_if(slowest->items.begin(), slowest->items.end(), [](auto& item) { return item.ns.load() > 0; }), 1);
}

}  // namespace
}  // namespace headrace::metrics
