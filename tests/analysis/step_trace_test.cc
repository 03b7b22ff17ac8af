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
  profile.sink.sequence[1] = {0.05, 0.02, 0.015, 0.004, 0.006};
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

/// Two steps of a device, one of which computed nothing.
profile::DeviceProfile traced() {
  profile::DeviceSteps steps;
  steps.steps = 1;
  steps.of_steps = 2;
  steps.tail_steps = 1;
  steps.iteration_gap_s = 0.02;
  steps.forward_backward_s = 0.03;
  steps.tail_s = 0.01;
  steps.communication_s = 0.008;
  steps.communication_overlap_s = 0.006;
  steps.sequence = {{7, 0.02, 0.03, 0.01, 0.06, 0.008, 0.006},
                    {8, std::nullopt, std::nullopt, std::nullopt, 0.05, 0, 0}};
  profile::DeviceProfile device;
  device.steps = steps;
  return device;
}

TEST(StepTrace, ADeviceTraceTellsMoreThanHooks) {
  Profile profile = recorded();
  profile.sink.marked = MarkedSteps{90, 100, 90, 0.034, 0.01, 0.006};
  profile.device = traced();
  const StepTrace trace = step_trace(profile);
  EXPECT_EQ(trace.source, "device_trace");
  EXPECT_EQ(trace.steps, 1u);
  EXPECT_EQ(trace.of_steps, 2u);
  EXPECT_NEAR(trace.average.iteration_gap_s.value(), 0.02, 1e-12);
  EXPECT_NEAR(trace.average.total_s, 0.06, 1e-12);
  EXPECT_NEAR(trace.average.communication_overlap_s.value(), 0.006, 1e-12);
  EXPECT_FALSE(trace.average.step);
  EXPECT_NE(trace.unknown.find("1 of 2 steps"), std::string::npos) << trace.unknown;
  ASSERT_EQ(trace.per_step.size(), 2u);
  EXPECT_EQ(trace.per_step[0].step, 7);
  EXPECT_NEAR(trace.per_step[0].tail_s.value(), 0.01, 1e-12);
  EXPECT_NEAR(trace.per_step[0].communication_s.value(), 0.008, 1e-12);
  EXPECT_FALSE(trace.per_step[1].iteration_gap_s);
  EXPECT_NEAR(trace.per_step[1].total_s, 0.05, 1e-12);
}

TEST(StepTrace, ATraceWithoutStepsGivesWayAndSaysSo) {
  Profile profile = recorded();
  profile.device = profile::DeviceProfile{};
  profile.device->step_notes = {"rank 0 has no steps: call step() of the profiler after each"};
  StepTrace trace = step_trace(profile);
  EXPECT_EQ(trace.source, "loader");
  EXPECT_NE(trace.unknown.find("rank 0 has no steps"), std::string::npos) << trace.unknown;
  EXPECT_NE(trace.unknown.find("the loader sees"), std::string::npos) << trace.unknown;
  profile.sink.marked = MarkedSteps{90, 100, 90, 0.034, 0.01, 0.006};
  trace = step_trace(profile);
  EXPECT_EQ(trace.source, "hooks");
  EXPECT_NE(trace.unknown.find("rank 0 has no steps"), std::string::npos) << trace.unknown;
}

TEST(StepTrace, ATraceWithoutBackwardGivesWayToHooksThatSawIt) {
  Profile profile = recorded();
  profile.device = traced();
  profile.device->steps->tail_steps = 0;
  profile.device->steps->sequence[0].tail_s.reset();
  StepTrace trace = step_trace(profile);
  EXPECT_EQ(trace.source, "device_trace") << "the loader knows even less";
  EXPECT_FALSE(trace.average.tail_s);
  EXPECT_NE(trace.unknown.find("backward was not found in 1 of 1 steps"), std::string::npos) << trace.unknown;
  profile.sink.marked = MarkedSteps{90, 100, 0, 0.034, 0.016, 0};
  EXPECT_EQ(step_trace(profile).source, "device_trace") << "so do hooks that saw no end of backward";
  profile.sink.marked = MarkedSteps{90, 100, 90, 0.034, 0.01, 0.006};
  trace = step_trace(profile);
  EXPECT_EQ(trace.source, "hooks");
  EXPECT_NE(trace.unknown.find("does not tell where backward ends"), std::string::npos) << trace.unknown;
}

TEST(StepTrace, ABlockOfNoStepsIsNone) {
  Profile profile = recorded();
  profile.sink.marked = MarkedSteps{};
  EXPECT_EQ(step_trace(profile).source, "loader");
  EXPECT_EQ(step_trace(Profile{}).steps, 0u);
}

}  // namespace
}  // namespace headrace::analysis
