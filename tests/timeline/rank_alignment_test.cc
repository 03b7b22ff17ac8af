#include "headrace/timeline/rank_alignment.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/times.h"

namespace headrace::timeline {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000'000'000;

/// Ends of the collectives of `steps` steps of 100 ms, four in each; each rank sees them up to 20 us apart.
std::vector<CollectiveEnd> rank(int steps, std::int64_t ahead_ns, unsigned seed, bool regular = false) {
  std::mt19937_64 random(seed);
  std::mt19937_64 common(1);
  std::vector<CollectiveEnd> ends;
  for (int step = 0; step < steps; ++step) {
    const auto late = static_cast<std::int64_t>(regular ? 0 : common() % (20 * kMs));
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::int64_t at = kNow + step * 100 * kMs + late + static_cast<std::int64_t>(i) * 10 * kMs;
      ends.push_back({i % 2, at + ahead_ns + static_cast<std::int64_t>(random() % 20'000)});
    }
  }
  return ends;
}

TEST(RankAlignment, FindsHowFarTheClocksAreApart) {
  const auto first = rank(30, 0, 2);
  for (const std::int64_t ahead : {std::int64_t{0}, -3 * kMs, 940 * kMs}) {
    const RankAlignment found = align_ranks(first, rank(30, ahead, 3), true);
    ASSERT_TRUE(found.error_ns);
    EXPECT_NEAR(static_cast<double>(found.shift_ns), static_cast<double>(-ahead), 20'000.0);
    EXPECT_LE(*found.error_ns, 40'000);
    EXPECT_EQ(found.matched, 120U);
  }
}

TEST(RankAlignment, RecordingsMayBeginAndEndElsewhere) {
  const auto first = rank(30, 0, 2);
  auto other = rank(30, 5 * kMs, 3);
  other.erase(other.begin(), other.begin() + 37);
  other.resize(70);
  const RankAlignment found = align_ranks(first, other, true);
  ASSERT_TRUE(found.error_ns);
  EXPECT_NEAR(static_cast<double>(found.shift_ns), static_cast<double>(-5 * kMs), 20'000.0);
  EXPECT_EQ(found.matched, 70U);
}

TEST(RankAlignment, OfStepsThatLookAlikeTheNearestIsTaken) {
  const auto first = rank(30, 0, 2, true);
  auto other = rank(30, 7 * kMs, 3, true);
  other.erase(other.begin(), other.begin() + 4);
  const RankAlignment found = align_ranks(first, other, true);
  ASSERT_TRUE(found.error_ns);
  EXPECT_NEAR(static_cast<double>(found.shift_ns), static_cast<double>(-7 * kMs), 20'000.0);
}

TEST(RankAlignment, SaysWhereNothingIsKnown) {
  const auto first = rank(30, 0, 2);
  EXPECT_FALSE(align_ranks(first, {}, true).error_ns);
  EXPECT_FALSE(align_ranks(first, rank(1, 0, 3), true).error_ns) << "four collectives";
  auto foreign = rank(30, 0, 3);
  for (CollectiveEnd& end : foreign) end.name += 7;
  EXPECT_FALSE(align_ranks(first, foreign, true).error_ns);
  // The same names, in other groups: their ends have nothing to do with each other.
  std::mt19937_64 random(5);
  auto elsewhere = rank(30, 0, 3);
  for (CollectiveEnd& end : elsewhere) end.end_ns += static_cast<std::int64_t>(random() % (80 * kMs));
  EXPECT_FALSE(align_ranks(first, elsewhere, true).error_ns);
}

}  // namespace
}  // namespace headrace::timeline
