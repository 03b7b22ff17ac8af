#include "headrace/analysis/cluster/stages.h"

#include <gtest/gtest.h>

namespace headrace::analysis::cluster {
namespace {

/// 16 ranks in four stages, 20 steps; `own_s` of each stage, and what a rank has more.
std::vector<RankSteps> job(const std::vector<double>& own_s, std::int64_t late = -1, double late_s = 0) {
  std::vector<RankSteps> ranks(16);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<std::int64_t>(i);
    ranks[i].stage = static_cast<std::int64_t>(i / 4);
    for (std::int64_t step = 0; step < 20; ++step) {
      ranks[i].step.push_back(step);
      ranks[i].total_s.push_back(1);
      const double noise = 0.001 * static_cast<double>((7 * static_cast<std::int64_t>(i) + step) % 5);
      ranks[i].own_s.push_back(own_s[i / 4] + noise + (ranks[i].rank == late ? late_s : 0));
    }
  }
  return ranks;
}

TEST(Stages, ALongerStageIsUnevenAndItsRanksAreNotSlow) {
  const std::vector<RankSteps> ranks = job({0.5, 0.5, 0.5, 0.9});
  const StageBalance balance = stage_balance(ranks);
  ASSERT_EQ(balance.stages.size(), 4U);
  EXPECT_TRUE(balance.uneven);
  EXPECT_EQ(balance.longest, 3);
  EXPECT_EQ(balance.stages[3].ranks, 4U);
  EXPECT_NEAR(balance.gain_share, 0.3, 0.002);
  EXPECT_NEAR(balance.stages[3].beyond_share, 0.5, 0.002);
  EXPECT_EQ(slow_ranks(ranks).verdict, JobVerdict::even);
}

TEST(Stages, OneSlowRankDoesNotMakeAStageLong) {
  const std::vector<RankSteps> ranks = job({0.5, 0.5, 0.5, 0.5}, 6, 0.3);
  EXPECT_FALSE(stage_balance(ranks).uneven);
  const SlowRanks found = slow_ranks(ranks);
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow[0].rank, 6);
  EXPECT_NEAR(found.gain_share, 0.3, 0.01);
}

TEST(Stages, ASlowRankOfAShortStageCostsTheJobLess) {
  // It is 0.3 s late in its stage, and the last stage takes 0.2 s longer than its own.
  const SlowRanks found = slow_ranks(job({0.5, 0.5, 0.5, 0.7}, 6, 0.3));
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_NEAR(found.slow[0].mean_late_s, 0.3, 0.005);
  EXPECT_NEAR(found.gain_share, 0.1, 0.01);
}

TEST(Stages, OfOneStageThereIsNoBalance) {
  std::vector<RankSteps> ranks = job({0.5, 0.5, 0.5, 0.9});
  for (RankSteps& rank : ranks) rank.stage = 0;
  EXPECT_TRUE(stage_balance(ranks).stages.empty());
  EXPECT_TRUE(stage_balance({}).stages.empty());
}

}  // namespace
}  // namespace headrace::analysis::cluster
