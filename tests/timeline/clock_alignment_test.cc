#include "headrace/timeline/clock_alignment.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/times.h"

namespace headrace::timeline {
namespace {

/// Calls as a loop makes them, and the same seen by a profiler whose clock is `shift` ahead, with up to
/// `jitter` around each stamp.
struct Calls {
  std::vector<TimeRange> ours;
  std::vector<TimeRange> theirs;

  Calls(std::size_t count, std::int64_t shift, std::int64_t jitter, std::size_t from = 0,
        std::size_t until = ~std::size_t{0}) {
    std::mt19937_64 random(7);
    const auto some = [&](std::int64_t most) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
    };
    std::int64_t now = 1'700'000'000'000'000'000;
    for (std::size_t i = 0; i < count; ++i) {
      now += 8 * kMs + some(6 * kMs);
      const std::int64_t lasts = kMs + some(20 * kMs);
      ours.push_back({now, now + lasts});
      if (i >= from && i < until)
        theirs.push_back({now + shift + some(jitter), now + shift + lasts - some(jitter)});
      now += lasts;
    }
  }
};

TEST(ClockAlignment, FindsASmallShiftAndSaysHowSure) {
  const Calls calls(40, 700'000, 20'000);
  const ClockAlignment found = align_clocks(calls.ours, calls.theirs, true);
  EXPECT_TRUE(found.applied);
  EXPECT_EQ(found.matched, 40U);
  EXPECT_NEAR(static_cast<double>(found.shift_ns), 700'000, 20'000);
  ASSERT_TRUE(found.error_ns.has_value());
  EXPECT_LE(*found.error_ns, 40'000);
}

TEST(ClockAlignment, FindsAnyShiftByThePatternOfTheCalls) {
  // The profiler saw ten calls in the middle, on a clock that began with the machine.
  const std::int64_t shift = -1'699'999'000'000'000'000;
  const Calls calls(200, shift, 10'000, 120, 130);
  const ClockAlignment found = align_clocks(calls.ours, calls.theirs, false);
  EXPECT_TRUE(found.applied);
  EXPECT_EQ(found.matched, 10U);
  EXPECT_NEAR(static_cast<double>(found.shift_ns - shift), 0, 20'000);
}

TEST(ClockAlignment, DoesNotRelyOnOneCall) {
  const Calls calls(40, 5 * kMs, 0, 20, 21);
  const ClockAlignment found = align_clocks(calls.ours, calls.theirs, true);
  EXPECT_FALSE(found.applied);
  EXPECT_EQ(found.shift_ns, 0);
  ASSERT_TRUE(found.error_ns.has_value());
  EXPECT_GE(*found.error_ns, 4 * kMs) << "what it would have changed is what may be wrong";
}

TEST(ClockAlignment, CallsOfAnotherLoopAreNoMatch) {
  const Calls calls(40, 0, 0);
  const Calls others(40, std::int64_t{3600} * 1000 * kMs, 0);
  const ClockAlignment found = align_clocks(calls.ours, others.theirs, true);
  EXPECT_FALSE(found.applied);
  EXPECT_EQ(found.shift_ns, 0);
}

TEST(ClockAlignment, WithoutCallsTheErrorIsUnknown) {
  const Calls calls(5, 0, 0);
  for (const ClockAlignment& found :
       {align_clocks({}, calls.theirs, true), align_clocks(calls.ours, {}, true)}) {
    EXPECT_FALSE(found.error_ns.has_value());
    EXPECT_NE(found.sentence().find("unknown"), std::string::npos);
  }
}

TEST(WallClock, FollowsAClockThatIsSet) {
  const std::vector<profile::TimeAnchor> anchors = {{1000, 501'000}, {2000, 502'000}, {3000, 603'000}};
  const WallClock clock(anchors);
  EXPECT_EQ(clock.unix_ns(1000), 501'000);
  EXPECT_EQ(clock.unix_ns(1500), 501'500);
  EXPECT_EQ(clock.unix_ns(500), 500'500);
  EXPECT_EQ(clock.unix_ns(2500), 552'500);
  EXPECT_EQ(clock.unix_ns(3500), 603'500);
}

}  // namespace
}  // namespace headrace::timeline
