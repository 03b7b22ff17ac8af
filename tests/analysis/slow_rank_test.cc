// One rank among its siblings: the case, and what looks like it.
#include <gtest/gtest.h>

#include "headrace/analysis/cluster/run_ranks.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "support/simulation/line.h"
#include "support/verdict_words.h"

namespace headrace::analysis {
namespace {

using profile::Profile;
using profile::RankFigures;

Profile bound_rank() {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 1e-3}, {.name = "decode", .sleep_s = 0.04}},
                        .compute_s = 0.02,
                        .cores = 8};
  Profile profile = simulation::simulate(line, 1);
  profile.rank = 3;
  return profile;
}

RankFigures other(int rank, double demand_s, double starved_share) {
  return {rank, 200, 0.04, 0.039, starved_share + 0.01, starved_share, demand_s, "decode"};
}

TEST(SlowRank, OneThatIsSlowerThanItsSiblingsIsNamed) {
  Profile profile = bound_rank();
  for (int rank : {0, 1, 2}) profile.ranks.push_back(other(rank, 0.018, 0));
  profile.slow_ranks = {3};
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.op, "decode");
  EXPECT_EQ(diagnosis.cause, Cause::slow_rank);
  EXPECT_NE(diagnosis.summary.find("rank 3"), std::string::npos);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_NEAR(*diagnosis.advice.front().predicted_step_s, 0.02, 0.002);
}

TEST(SlowRank, OneThatTheOthersDoNotWaitForHasTooFewWorkers) {
  Profile profile = bound_rank();
  for (int rank : {0, 1, 2}) profile.ranks.push_back(other(rank, 0.018, 0));
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
  // Its step is slow, its input is not.
  profile.ranks.clear();
  for (int rank : {0, 1, 2}) profile.ranks.push_back(other(rank, 0.05, 0.5));
  profile.slow_ranks = {3};
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
}

/// 40 steps of 20 ms and a wait.
Profile recorded(int rank, double wait_s) {
  Profile profile;
  profile.rank = rank;
  profile.sink.steps = 40;
  for (int i = 0; i < 40; ++i) {
    profile::StepSample sample;
    sample.wait_s = wait_s + 1e-5 * ((7 * i + rank) % 5);
    sample.compute_s = 0.02;
    profile.sink.sequence.push_back(sample);
  }
  return profile;
}

TEST(SlowRank, TheRanksOfARunFolderAreJudgedAsThoseOfAJob) {
  Profile own = recorded(0, 0);
  cluster::RunRanks ranks(own);
  for (const int rank : {3, 2, 1}) ranks.add(recorded(rank, rank == 2 ? 0.02 : 0));
  std::move(ranks).write(own);
  EXPECT_EQ(own.slow_ranks, std::vector<int>{2});
  ASSERT_EQ(own.ranks.size(), 3U);
  EXPECT_EQ(own.ranks.front().rank, 1);
}

TEST(SlowRank, AloneOrBesideRanksWithoutStepsNothingIsCompared) {
  Profile profile = bound_rank();
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
  profile.ranks.push_back(other(0, 0.001, 0));
  profile.ranks.back().steps = 2;
  profile.slow_ranks = {3};
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
}

TEST(SlowRank, AHealthyRankSaysWhomItWaitsFor) {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 1e-3}}, .compute_s = 0.04, .cores = 8};
  Profile profile = simulation::simulate(line, 1);
  profile.ranks = {other(1, 0.001, 0), other(3, 0.04, 0.5)};
  profile.slow_ranks = {3};
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_TRUE(diagnosis.advice.empty());
  bool said = false;
  for (const Evidence& evidence : diagnosis.evidence) {
    said = said || (evidence.rule == Rule::ranks && evidence.says.find("rank 3") != std::string::npos);
  }
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace headrace::analysis
