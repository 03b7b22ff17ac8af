#include "headrace/analysis/cluster/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace::analysis::cluster {
namespace {

/// Steps of 1 s; rank 37 is 0.5 s late in step 200.
std::vector<RankSteps> ranks_of(std::int64_t count, std::int64_t steps) {
  std::vector<RankSteps> ranks;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    RankSteps one;
    one.rank = rank;
    for (std::int64_t step = 0; step < steps; ++step) {
      one.step.push_back(step);
      one.total_s.push_back(1);
      one.own_s.push_back(rank == 37 && step == 200 ? 1.0 : 0.5);
    }
    ranks.push_back(std::move(one));
  }
  return ranks;
}

TEST(HeatMap, ManyRanksShareARowWithoutLosingTheLateOne) {
  const HeatMap map = heat_map(ranks_of(1000, 300));
  ASSERT_EQ(map.rows.size(), 143U);  // seven ranks each
  ASSERT_EQ(map.columns.size(), 100U);
  EXPECT_EQ(map.rows[5], (std::pair<std::int64_t, std::int64_t>(35, 41)));
  EXPECT_EQ(map.rows.back().second, 999);
  EXPECT_EQ(map.columns[66], (std::pair<std::int64_t, std::int64_t>(198, 200)));
  EXPECT_DOUBLE_EQ(map.late_share[5 * 100 + 66], 0.5);
  EXPECT_DOUBLE_EQ(map.late_share[5 * 100 + 65], 0);
}

TEST(HeatMap, ChosenRanksAreRowsOfTheirOwn) {
  const HeatMap map = heat_map(ranks_of(50, 300), {.only = {37, 2, 99}});
  ASSERT_EQ(map.rows.size(), 2U);
  EXPECT_EQ(map.rows[0].first, 37);
  EXPECT_EQ(map.rows[1].first, 2);
  EXPECT_DOUBLE_EQ(map.late_share[66], 0.5);
}

TEST(HeatMap, WhatIsNotRecordedIsNotZero) {
  std::vector<RankSteps> ranks = ranks_of(3, 4);
  ranks[1].own_s[2] = NAN;
  const HeatMap map = heat_map(ranks);
  EXPECT_TRUE(std::isnan(map.late_share[1 * 4 + 2]));
  EXPECT_EQ(map.late_share[0], 0);
  EXPECT_TRUE(heat_map({}).rows.empty());
}

}  // namespace
}  // namespace headrace::analysis::cluster
