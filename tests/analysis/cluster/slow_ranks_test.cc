#include "headrace/analysis/cluster/slow_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace headrace::analysis::cluster {
namespace {

/// Seconds that a rank computes in a step, without the collective.
using OwnTime = std::function<double(std::int64_t rank, std::int64_t step)>;

/// Ranks that meet in a collective of 0.1 s in every step: each step takes as long as the latest needs.
std::vector<RankSteps> job(std::int64_t ranks, std::int64_t steps, const OwnTime& own_s) {
  std::vector<RankSteps> result(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) result[static_cast<std::size_t>(rank)].rank = rank;
  for (std::int64_t step = 0; step < steps; ++step) {
    double latest_s = 0;
    std::vector<double> own;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      own.push_back(own_s(rank, step));
      latest_s = std::max(latest_s, own.back());
    }
    for (RankSteps& each : result) {
      each.step.push_back(100 + step);
      each.total_s.push_back(latest_s + 0.1);
      each.own_s.push_back(own[static_cast<std::size_t>(each.rank)]);
    }
  }
  return result;
}

/// 0.4 s with a lasting difference of 1 % between ranks and 3 % from step to step.
class Drawn {
 public:
  explicit Drawn(unsigned seed, std::int64_t ranks = 64) : random_(seed) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) bias_.push_back(0.01 * normal_(random_));
  }
  double operator()(std::int64_t rank) {
    return 0.4 * (1 + bias_[static_cast<std::size_t>(rank)]) * std::exp(0.03 * normal_(random_));
  }
  std::int64_t below(std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_);
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> bias_;
};

TEST(SlowRanks, TheRankThatTheOthersWaitForIsNamedWithItsGain) {
  const SlowRanks found = slow_ranks(job(8, 20, [](auto rank, auto) { return rank == 5 ? 0.6 : 0.4; }));
  EXPECT_EQ(found.verdict, JobVerdict::slow_rank);
  ASSERT_EQ(found.slow.size(), 1U);
  const SlowRank& slow = found.slow[0];
  EXPECT_EQ(slow.rank, 5);
  EXPECT_NEAR(slow.mean_late_s, 0.2, 1e-9);
  EXPECT_NEAR(slow.gain_share, 0.2 / 0.7, 1e-9);
  EXPECT_TRUE(slow.steady);
  EXPECT_TRUE(slow.from_the_start);
  EXPECT_EQ(slow.since_step, 100);
  EXPECT_TRUE(std::isinf(slow.margin));
  EXPECT_NEAR(found.step_s, 0.7, 1e-9);
  EXPECT_EQ(found.ranks[5].last_share, 1);
  EXPECT_EQ(found.ranks[4].last_share, 0);
}

// Two ranks with equal inputs meet in every step: one waits for its input, the other for it. In a draw, which.
TEST(SlowRanks, OfRanksWithEqualInputsNoneIsSlow) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Drawn drawn(seed, 2);
    std::vector<RankSteps> ranks = job(2, 100, [&](auto rank, auto) { return rank == 1 ? drawn(1) : 0.01; });
    for (RankSteps& rank : ranks) rank.input_s = 0.49;
    EXPECT_EQ(slow_ranks(ranks).verdict, JobVerdict::even) << seed;
    // The other's input would allow two thirds of the step.
    ranks[0].input_s = 0.33;
    ranks[1].input_s = 0.5;
    const SlowRanks found = slow_ranks(ranks);
    ASSERT_EQ(found.slow.size(), 1U) << seed;
    EXPECT_EQ(found.slow[0].rank, 1);
    EXPECT_NEAR(found.gain_share, 1 - 0.33 / found.step_s, 1e-9);
  }
}

TEST(SlowRanks, SinceWhichStep) {
  const SlowRanks found = slow_ranks(job(8, 60, [](auto rank, auto step) {
    return rank == 2 && step >= 37 ? 0.6 : 0.4 + 0.001 * ((rank + step) % 3);
  }));
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow[0].rank, 2);
  EXPECT_EQ(found.slow[0].since_step, 137);
  EXPECT_FALSE(found.slow[0].from_the_start);
  EXPECT_TRUE(found.slow[0].steady);
  EXPECT_EQ(found.slow[0].late_share, 1);
}

TEST(SlowRanks, ARankThatBecomesSlowAtTheEndIsFound) {
  // Lasting differences of 1 % between ranks; 16 % in the last fifth are 3 % on average.
  const auto own_s = [](auto rank, auto step) {
    return 0.4 + 0.004 * static_cast<double>(rank % 5) + (rank == 6 && step >= 80 ? 0.064 : 0);
  };
  const SlowRanks found = slow_ranks(job(16, 100, own_s));
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow[0].rank, 6);
  EXPECT_EQ(found.slow[0].since_step, 180);
  EXPECT_TRUE(found.slow[0].steady);
}

TEST(SlowRanks, PausesOfOneRankAreThatRank) {
  const auto own_s = [](auto rank, auto step) {
    return 0.4 + 0.008 * static_cast<double>(rank % 5) + (rank == 0 && step % 12 == 3 ? 0.4 : 0);
  };
  const SlowRanks found = slow_ranks(job(16, 96, own_s));
  EXPECT_EQ(found.verdict, JobVerdict::slow_rank);
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow[0].rank, 0);
  EXPECT_EQ(found.slow[0].period_steps, 12);
}

TEST(SlowRanks, ARankThatIsLateNowAndThenHasAPeriod) {
  const SlowRanks found =
      slow_ranks(job(8, 100, [](auto rank, auto step) { return rank == 3 && step % 10 == 4 ? 0.9 : 0.4; }));
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow[0].rank, 3);
  EXPECT_FALSE(found.slow[0].steady);
  EXPECT_EQ(found.slow[0].period_steps, 10);
  EXPECT_NEAR(found.slow[0].late_share, 0.1, 1e-9);
}

TEST(SlowRanks, PausesThatMoveFromRankToRankAreNoSlowRank) {
  const SlowRanks found = slow_ranks(job(16, 96, [](auto rank, auto step) {
    return step % 16 == rank ? 0.5 : 0.4 + 0.002 * ((rank * 7 + step) % 5);
  }));
  EXPECT_EQ(found.verdict, JobVerdict::pauses);
  EXPECT_TRUE(found.slow.empty());
  EXPECT_EQ(found.pausing_ranks, 16U);
  EXPECT_NEAR(found.gain_share, (0.5 - 0.408) / 0.6, 0.01);
}

TEST(SlowRanks, SeveralSlowRanksAreOneGroup) {
  const SlowRanks found = slow_ranks(
      job(16, 20, [](auto rank, auto) { return rank / 4 == 2 ? 0.6 + 0.001 * rank : 0.4 + 0.0005 * rank; }));
  ASSERT_EQ(found.slow.size(), 4U);
  EXPECT_EQ(found.slow[0].rank, 11);
  EXPECT_EQ(found.slow[3].rank, 8);
  EXPECT_LT(found.slow[0].gain_share, 0.01) << "the other three are as late";
  EXPECT_NEAR(found.gain_share, 0.203 / 0.711, 0.01);
}

TEST(SlowRanks, EvenJobsHaveNone) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Drawn drawn(seed);
    const SlowRanks found = slow_ranks(job(64, 100, [&](auto rank, auto) { return drawn(rank); }));
    EXPECT_EQ(found.verdict, JobVerdict::even) << "seed " << seed;
  }
}

TEST(SlowRanks, AnInjectedOneIsFoundInNoise) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Drawn drawn(seed);
    const std::int64_t victim = drawn.below(64);
    const SlowRanks found =
        slow_ranks(job(64, 100, [&](auto rank, auto) { return drawn(rank) * (rank == victim ? 1.2 : 1.0); }));
    ASSERT_EQ(found.slow.size(), 1U) << "seed " << seed;
    EXPECT_EQ(found.slow[0].rank, victim);
    EXPECT_TRUE(found.slow[0].steady);
    EXPECT_GT(found.gain_share, 0.05);
  }
}

TEST(SlowRanks, RanksWithOtherStepsAreStillCompared) {
  std::vector<RankSteps> ranks = job(6, 30, [](auto rank, auto) { return rank == 1 ? 0.6 : 0.4; });
  ranks[0].step.resize(10);
  ranks[0].total_s.resize(10);
  ranks[0].own_s.resize(10);
  ranks[2].own_s[3] = std::numeric_limits<double>::quiet_NaN();
  ranks[3].own_s.pop_back();  // a damaged table
  ranks[4].step.clear();
  ranks[4].total_s.clear();
  ranks[4].own_s.clear();
  const SlowRanks found = slow_ranks(ranks);
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow[0].rank, 1);
  EXPECT_EQ(found.ranks[0].steps, 10U);
  EXPECT_EQ(found.ranks[2].steps, 29U);
  EXPECT_EQ(found.ranks[3].steps, 0U);
  EXPECT_EQ(found.ranks[4].steps, 0U);
}

TEST(SlowRanks, TooLittleIsUndetermined) {
  EXPECT_EQ(slow_ranks({}).verdict, JobVerdict::undetermined);
  EXPECT_EQ(slow_ranks(job(1, 20, [](auto, auto) { return 1.0; })).verdict, JobVerdict::undetermined);
  EXPECT_EQ(slow_ranks(job(4, 3, [](auto, auto) { return 1.0; })).verdict, JobVerdict::undetermined);
}

TEST(SlowRanks, RanksThatDoNotMeetGainNoMoreThanTheyTake) {
  std::vector<RankSteps> ranks = job(3, 30, [](auto, auto) { return 0.0; });
  for (RankSteps& each : ranks) {
    for (std::size_t i = 0; i < each.step.size(); ++i)
      each.total_s[i] = each.own_s[i] = each.rank == 1 ? 0.02 : 0.005;
  }
  const SlowRanks found = slow_ranks(ranks);
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_NEAR(found.step_s, 0.02, 1e-9);
  EXPECT_NEAR(found.gain_share, 0.75, 1e-9);
}

TEST(SlowRanks, ARankThatWaitedForTheStartOfAnotherIsInStepWithIt) {
  std::vector<RankSteps> ranks = job(2, 100, [](std::int64_t, std::int64_t) { return 0.05; });
  EXPECT_TRUE(in_step(ranks));
  ranks[0].total_s.front() += 2;
  EXPECT_TRUE(in_step(ranks));
  for (double& each : ranks[0].total_s) each *= 1.1;
  EXPECT_FALSE(in_step(ranks));
}

TEST(SlowRanks, OneOfManyRanksThatTakesLongerDoesNotMeetTheOthers) {
  std::vector<RankSteps> ranks = job(40, 20, [](std::int64_t, std::int64_t) { return 0.05; });
  EXPECT_TRUE(in_step(ranks));
  for (double& each : ranks[7].total_s) each *= 1.7;
  EXPECT_FALSE(in_step(ranks));
}

TEST(SlowRanks, AStepWithoutARank) {
  const std::vector<RankSteps> ranks = job(4, 10, [](auto rank, auto) {
    return rank == 3 ? 0.6 : rank == 2 ? 0.5 : 0.4;
  });
  const auto step_s = [&](std::vector<std::int64_t> without) { return step_without(ranks, without); };
  EXPECT_NEAR(step_s({}).value(), 0.7, 1e-9);
  EXPECT_NEAR(step_s({3}).value(), 0.6, 1e-9);
  EXPECT_NEAR(step_s({2, 3}).value(), 0.5, 1e-9);
  EXPECT_NEAR(step_s({2}).value(), 0.7, 1e-9);
  EXPECT_EQ(step_s({0, 1, 2, 3}), std::nullopt);
  EXPECT_EQ(step_without({}, {}), std::nullopt);
}

TEST(Lateness, IsRowByRow) {
  const std::vector<RankSteps> ranks =
      job(3, 2, [](auto rank, auto) { return 1.0 + static_cast<double>(rank); });
  const std::vector<std::int64_t> steps = {101, 100, 900};
  const std::vector<double> late = lateness(ranks, steps);
  ASSERT_EQ(late.size(), 9U);
  EXPECT_EQ(late[0], -1);
  EXPECT_EQ(late[3], 0);
  EXPECT_EQ(late[7], 1);
  EXPECT_TRUE(std::isnan(late[8]));
}

TEST(SlowRanks, ACollectiveThatWasNotRecordedIsNotAPause) {
  // 0.4 s of work and 0.5 s of communication. Of ranks 1 and 4, a collective is missing in two steps.
  const auto own_s = [](auto rank, auto step) {
    return 0.4 + 0.002 * static_cast<double>((rank * 7 + step) % 5);
  };
  std::vector<RankSteps> ranks = job(8, 20, own_s);
  for (RankSteps& rank : ranks) {
    for (double& total : rank.total_s) total += 0.4;
  }
  ranks[1].own_s[3] += 0.4;
  ranks[4].own_s[11] += 0.4;
  EXPECT_EQ(slow_ranks(ranks).verdict, JobVerdict::even);
  // The same with the others waiting for it.
  for (RankSteps& rank : ranks) {
    rank.total_s[3] += 0.4;
    rank.total_s[11] += 0.4;
  }
  EXPECT_EQ(slow_ranks(ranks).verdict, JobVerdict::pauses);
}

TEST(SlowRanks, LongerStepsMayDifferMore) {
  Drawn drawn(5, 16);
  std::vector<RankSteps> ranks =
      job(16, 80, [&](auto rank, auto step) { return drawn(rank) * (step % 8 == 0 ? 4 : 1); });
  EXPECT_EQ(slow_ranks(ranks).verdict, JobVerdict::even);
}

}  // namespace
}  // namespace headrace::analysis::cluster
