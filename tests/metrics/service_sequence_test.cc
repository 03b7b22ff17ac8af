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
  for (std::uint64_t i = 0; i < 1000; ++i)
    sequence->add(i, static_cast<std::int64_t>(10 * i), static_cast<std::int64_t>(i));
  EXPECT_EQ(sequence->count.load(), 1000U);
  for (std::uint64_t i = 1000 - ServiceSequence::kLength; i < 1000; ++i) {
    const auto& sample = sequence->samples[i % ServiceSequence::kLength];
    EXPECT_EQ(sample.index.load(), i);
    EXPECT_EQ(sample.wall_ns.load(), static_cast<float>(10 * i));
    EXPECT_EQ(sample.cpu_ns.load(), static_cast<float>(i));
  }
}

TEST(BurstSampling, TakesEverySlowItem) {
  Zeroed<BurstSampling> sampling;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(sampling->take(i, BurstSampling::kAlwaysNs));
}

TEST(BurstSampling, TakesFastItemsInBursts) {
  Zeroed<BurstSampling> sampling;
  int taken = 0, run = 0;
  constexpr std::int64_t kItemNs = 500;
  constexpr std::int64_t kBursts = 20;
  for (std::int64_t now = 0; now < kBursts * BurstSampling::kPauseNs; now += kItemNs) {
    const bool sampled = sampling->take(now, kItemNs);
    taken += sampled ? 1 : 0;
    if (!sampled && run > 0) {
      EXPECT_EQ(run, static_cast<int>(BurstSampling::kBurst)) << "consecutive, so that their order is seen";
    }
    run = sampled ? run + 1 : 0;
  }
  EXPECT_EQ(taken, kBursts * BurstSampling::kBurst);
}

TEST(BurstSampling, BeginsAtOnceWhenReset) {
  Zeroed<BurstSampling> sampling;
  for (std::uint32_t i = 0; i < BurstSampling::kBurst; ++i) EXPECT_TRUE(sampling->take(1, 0));
  EXPECT_FALSE(sampling->take(1, 0));
  sampling->reset();
  EXPECT_TRUE(sampling->take(1, 0));
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
  EXPECT_EQ(std::count_if(slowest->items.begin(), slowest->items.end(),
                          [](auto& item) { return item.ns.load() > 0; }),
            1);
}

}  // namespace
}  // namespace headrace::metrics
