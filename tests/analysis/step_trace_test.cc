#include "headrace/analysis/step_trace.h"

#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

using profile::MarkedSteps;
using profile::Profile;

/// Steps that wait 30 ms and compute 20 ms.
Profile recorded() {
  Profile profile;
  profile.sink.step_s = 0.05;
  profile.sink.compute_s = 0.02;
  profile.sink.getnext_wait.count = 100;
  profile.sink.sequence = {{0.01, 0.02}, {0.05, 0.02}};
  return profile;
}

TEST(StepTrace, TheLoaderAloneTellsGapFromTheRest) {
  const StepTrace trace = step_trace(recorded());
  EXPECT_EQ(trace.source, "loader");
  EXPECT_NE(trace.unknown.find("tail"), std::string::npos);
  EXPECT_EQ(trace.steps, 100u);
  EXPECT_EQ(trace.of_steps, 100u);
  EXPECT_NEAR(trace.average.iteration_gap_s.value(), 0.03, 1e-12);
  EXPECT_NEAR(trace.average.forward_backward_s.value(), 0.02, 1e-12);
  EXPECT_FALSE(trace.average.tail_s);
  ASSERT_EQ(trace.per_step.size(), 2u);
  EXPECT_NEAR(trace.per_step[1].total_s, 0.07, 1e-12);
}

TEST(StepTrace, HooksTellAllThreeParts) {
  Profile profile = recorded();
  profile.sink.sequence[1] = {0.05, 0.02, 0.004, 0.006};
  profile.sink.marked = MarkedSteps{90, 100, 90, 0.034, 0.01, 0.006};
  const StepTrace trace = step_trace(profile);
  EXPECT_EQ(trace.source, "hooks");
  EXPECT_EQ(trace.steps, 90u);
  EXPECT_EQ(trace.of_steps, 100u);
  EXPECT_NEAR(trace.average.total_s, 0.05, 1e-12);
  EXPECT_NEAR(trace.average.tail_s.value(), 0.006, 1e-12);
  EXPECT_NE(trace.unknown.find("host"), std::string::npos);
  EXPECT_EQ(trace.unknown.find("end of backward"), std::string::npos);
  ASSERT_EQ(trace.per_step.size(), 2u);
  EXPECT_NEAR(trace.per_step[1].iteration_gap_s.value(), 0.054, 1e-12);
  EXPECT_NEAR(trace.per_step[1].forward_backward_s.value(), 0.01, 1e-12);
  EXPECT_NEAR(trace.per_step[1].tail_s.value(), 0.006, 1e-12);
  EXPECT_NEAR(trace.per_step[1].total_s, 0.07, 1e-12);
}

TEST(StepTrace, AStepThatHooksDidNotMarkHasATotalOnly) {
  Profile profile = recorded();
  profile.sink.marked = MarkedSteps{1, 2, 1, 0.03, 0.01, 0.01};
  const StepTrace trace = step_trace(profile);
  EXPECT_FALSE(trace.per_step[0].iteration_gap_s) << "its wait alone would be another definition";
  EXPECT_FALSE(trace.per_step[0].forward_backward_s);
  EXPECT_FALSE(trace.per_step[0].tail_s);
  EXPECT_NEAR(trace.per_step[0].total_s, 0.03, 1e-12);
}

TEST(StepTrace, SaysWhereTheEndOfBackwardWasNotSeen) {
  Profile profile = recorded();
  profile.sink.sequence[0].before_forward_s = 0.005;
  profile.sink.marked = MarkedSteps{100, 100, 0, 0.035, 0.015, 0};
  StepTrace trace = step_trace(profile);
  EXPECT_FALSE(trace.average.tail_s);
  EXPECT_NEAR(trace.average.total_s, 0.05, 1e-12);
  EXPECT_NEAR(trace.per_step[0].forward_backward_s.value(), 0.015, 1e-12);
  EXPECT_NE(trace.unknown.find("100 of 100 steps"), std::string::npos) << trace.unknown;
  profile.sink.marked = MarkedSteps{100, 100, 75, 0.035, 0.012, 0.003};
  trace = step_trace(profile);
  EXPECT_NEAR(trace.average.tail_s.value(), 0.003, 1e-12);
  EXPECT_NE(trace.unknown.find("25 of 100 steps"), std::string::npos) << trace.unknown;
}

TEST(StepTrace, ABlockOfNoStepsIsNone) {
  Profile profile = recorded();
  profile.sink.marked = MarkedSteps{};
  EXPECT_EQ(step_trace(profile).source, "loader");
  EXPECT_EQ(step_trace(Profile{}).steps, 0u);
}

}  // namespace
}  // namespace headrace::analysis
