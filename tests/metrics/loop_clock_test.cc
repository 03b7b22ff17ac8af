#include "headrace/metrics/loop_clock.h"

#include <gtest/gtest.h>

#include <random>

namespace headrace::metrics {
namespace {

TEST(LoopClock, RunsFromTheOpeningUntilTheLoopBegins) {
  LoopClock clock{};
  clock.open(1000);
  EXPECT_EQ(clock.read(1700).loop_ns, 700);
  EXPECT_FALSE(clock.read(1700).begun);
  EXPECT_FALSE(clock.read(1700).paused);
}

TEST(LoopClock, BeginsAtZero) {
  LoopClock clock{};
  clock.open(1000);
  clock.resume(5000);
  EXPECT_TRUE(clock.read(5000).begun);
  EXPECT_EQ(clock.read(5000).loop_ns, 0);
  EXPECT_EQ(clock.read(5300).loop_ns, 300);
}

TEST(LoopClock, StandsStillWhilePaused) {
  LoopClock clock{};
  clock.open(0);
  clock.resume(100);
  clock.pause(350);
  EXPECT_TRUE(clock.read(9999).paused);
  EXPECT_EQ(clock.read(9999).loop_ns, 250);
  clock.resume(10'000);
  EXPECT_FALSE(clock.read(10'000).paused);
  EXPECT_EQ(clock.read(10'005).loop_ns, 255);
}

TEST(LoopClock, IgnoresCallsOutOfOrder) {
  LoopClock clock{};
  clock.open(0);
  clock.pause(50);  // nothing has begun
  EXPECT_FALSE(clock.read(60).paused);
  clock.resume(100);
  clock.resume(200);  // a second loop beside the first
  EXPECT_EQ(clock.read(300).loop_ns, 200);
  clock.pause(300);
  clock.pause(400);
  EXPECT_EQ(clock.read(500).loop_ns, 200);
}

TEST(LoopClock, IsNeverNegative) {
  LoopClock clock{};
  clock.open(1000);
  EXPECT_EQ(clock.read(10).loop_ns, 0);
  clock.resume(2000);
  EXPECT_EQ(clock.read(1).loop_ns, 0);
}

TEST(LoopClock, CountsExactlyTheTimeBetweenResumeAndPause) {
  std::mt19937_64 random(5);
  LoopClock clock{};
  std::int64_t now = 1'000'000, expected = 0;
  clock.open(now);
  now += 500;
  clock.resume(now);
  bool running = true;
  for (int i = 0; i < 10'000; ++i) {
    const auto lasted = static_cast<std::int64_t>(random() % 1'000'000'000);
    now += lasted;
    if (running) expected += lasted;
    switch (random() % 4) {
      case 0:
        clock.pause(now);
        running = false;
        break;
      case 1:
        clock.resume(now);
        running = true;
        break;
      default:
        break;
    }
    ASSERT_EQ(clock.read(now).loop_ns, expected);
    ASSERT_EQ(clock.read(now).paused, !running);
  }
}

/// A word from a damaged file may hold anything.
TEST(LoopClock, DecodesAnyWord) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 100'000; ++i) {
    const auto now = static_cast<std::int64_t>(random());
    EXPECT_GE(LoopClock::decode(random(), now).loop_ns, 0);
  }
  EXPECT_GE(LoopClock::decode(~std::uint64_t{0} >> 2, INT64_MIN).loop_ns, 0);
}

}  // namespace
}  // namespace headrace::metrics
