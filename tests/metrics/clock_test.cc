#include "headrace/metrics/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "headrace/metrics/anchors.h"
#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

/// Distance of the clock from CLOCK_MONOTONIC: the closest of many tries, as a thread may lose its core in
/// between.
std::int64_t distance_ns() {
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t before = Clock::monotonic_ns();
    const std::int64_t now = Clock::now_ns();
    const std::int64_t after = Clock::monotonic_ns();
    best = std::min(best, now < before ? before - now : std::max<std::int64_t>(0, now - after));
  }
  return best;
}

TEST(Clock, ReadsTheMonotonicClock) {
  Clock::calibrate();
  EXPECT_LT(distance_ns(), 20'000);
}

TEST(Clock, NeverRunsBackwards) {
  Clock::calibrate();
  std::int64_t last = Clock::now_ns();
  for (int i = 0; i < 200'000; ++i) {
    const std::int64_t now = Clock::now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, AgreesBetweenThreads) {
  Clock::calibrate();
  std::int64_t began = Clock::now_ns();
  for (int i = 0; i < 50; ++i) {
    std::int64_t there = 0;
    std::thread([&] { there = Clock::now_ns(); }).join();
    const std::int64_t here = Clock::now_ns();
    EXPECT_LE(began, there);
    EXPECT_LE(there, here);
    began = here;
  }
}

TEST(Clock, IsCalibratedOnce) {
  const ClockCalibration first = Clock::calibrate();
  const ClockCalibration second = Clock::calibrate();
  EXPECT_EQ(first.base_ticks, second.base_ticks);
  EXPECT_EQ(first.base_ns, second.base_ns);
  EXPECT_EQ(first.ns_per_tick_q32, second.ns_per_tick_q32);
  if (first.uses_tsc != 0) {
    EXPECT_GT(first.ns_per_tick_q32, 0U);
  }
}

/// Calibrated already: what the run says no longer counts, or its time would jump in the middle.
TEST(Clock, KeepsItsOwnCalibrationWhenItJoinsARun) {
  const ClockCalibration own = Clock::calibrate();
  const ClockCalibration absurd{0, 0, 1, 1, 0};
  Clock::adopt(absurd);
  EXPECT_EQ(Clock::calibrate().base_ns, own.base_ns);
  EXPECT_LT(distance_ns(), 20'000);
}

TEST(Clock, MomentsLieOnOneLine) {
  Clock::calibrate();
  const ClockMoment first = Clock::moment();
  const std::int64_t before = Clock::now_ns();
  const ClockMoment second = Clock::moment();
  EXPECT_GE(second.now_ns, before);
  EXPECT_LE(second.now_ns, Clock::now_ns());
  // A hundred times what an interruption of every try but one would leave.
  EXPECT_NEAR(static_cast<double>(second.realtime_ns - first.realtime_ns),
              static_cast<double>(second.now_ns - first.now_ns), 1e5);
}

TEST(Clock, VirtualTimePassesByAdvanceAlone) {
  Clock::set_virtual(true);
  const ClockMoment began = Clock::moment();
  const std::int64_t cpu_ns = Clock::thread_cpu_ns();
  const std::int64_t process_cpu_ns = Clock::process_cpu_ns();
  Clock::advance(5'000'000, 2'000'000);
  std::int64_t cpu_there = 0;
  std::thread([&] {
    Clock::advance(1'000'000, 1'000'000);
    cpu_there = Clock::thread_cpu_ns();
  }).join();
  EXPECT_EQ(cpu_there, 1'000'000);
  EXPECT_EQ(Clock::thread_cpu_ns() - cpu_ns, 2'000'000);
  EXPECT_EQ(Clock::process_cpu_ns() - process_cpu_ns, 3'000'000);
  const ClockMoment ended = Clock::moment();
  EXPECT_EQ(ended.now_ns - began.now_ns, 6'000'000);
  EXPECT_EQ(ended.realtime_ns - began.realtime_ns, 6'000'000);
  Clock::set_virtual(false);
  EXPECT_LT(distance_ns(), 20'000);
}

TEST(AnchorRing, KeepsTheFirstAndTheNewest) {
  Zeroed<AnchorRing> ring;
  constexpr std::int64_t kAdded = 1000;
  for (std::int64_t i = 0; i < kAdded; ++i) ring->add({i, 10'000 + i});
  EXPECT_EQ(ring->count.load(), static_cast<std::uint64_t>(kAdded));
  std::vector<std::int64_t> kept;
  for (const Anchor& anchor : ring->anchors) {
    EXPECT_EQ(anchor.realtime_ns.load(), anchor.monotonic_ns.load() + 10'000);
    kept.push_back(anchor.monotonic_ns.load());
  }
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept.front(), 0);
  for (std::uint32_t i = 1; i < AnchorRing::kLength; ++i) {
    EXPECT_EQ(kept[i], kAdded - AnchorRing::kLength + static_cast<std::int64_t>(i));
  }
}

TEST(AnchorRing, HoldsFewAsTheyCame) {
  Zeroed<AnchorRing> ring;
  for (std::int64_t i = 0; i < AnchorRing::kLength; ++i) ring->add({i, -i});
  for (std::uint32_t i = 0; i < AnchorRing::kLength; ++i) EXPECT_EQ(ring->anchors[i].monotonic_ns.load(), i);
}

}  // namespace
}  // namespace headrace::metrics
