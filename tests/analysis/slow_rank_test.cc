// One rank among its siblings: the case, and what looks like it.
#include <gtest/gtest.h>

#include "headrace/analysis/diagnosis/diagnose.h"
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
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.op, "decode");
  EXPECT_EQ(diagnosis.cause, Cause::slow_rank);
  EXPECT_NE(diagnosis.summary.find("rank 3"), std::string::npos);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_NEAR(*diagnosis.advice.front().predicted_step_s, 0.02, 0.002);
}

TEST(SlowRank, RanksThatAreAllAsSlowHaveTooFewWorkers) {
  Profile profile = bound_rank();
  for (int rank : {0, 1, 2}) profile.ranks.push_back(other(rank, 0.04, 0.5));
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
  // As slow, and not starving only because their own step is longer.
  profile.ranks.clear();
  for (int rank : {0, 1, 2}) profile.ranks.push_back(other(rank, 0.038, 0));
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
}

TEST(SlowRank, AloneOrBesideRanksWithoutStepsNothingIsCompared) {
  Profile profile = bound_rank();
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
  profile.ranks.push_back(other(0, 0.001, 0));
  profile.ranks.back().steps = 2;
  EXPECT_EQ(diagnose(profile).cause, Cause::too_few_workers);
}

TEST(SlowRank, AHealthyRankSaysWhomItWaitsFor) {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 1e-3}}, .compute_s = 0.04, .cores = 8};
  Profile profile = simulation::simulate(line, 1);
  profile.ranks = {other(1, 0.001, 0), other(3, 0.04, 0.5)};
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
