#include "headrace/timeline/device_profile.h"

#include <gtest/gtest.h>

#include "analysis/device/trace_builder.h"
#include "analysis/device/two_steps.h"

namespace headrace::timeline {
namespace {

using analysis::device::TraceBuilder;

TEST(DeviceProfile, HasTheStepsOfTheTrace) {
  const trace::Trace trace = analysis::device::two_steps().rank(3).build();
  const auto device = device_profile(trace, nullptr, "train");
  ASSERT_TRUE(device && device->steps);
  EXPECT_EQ(device->rank, 3);
  EXPECT_TRUE(device->step_notes.empty());
  const profile::DeviceSteps& steps = *device->steps;
  EXPECT_EQ(steps.steps, 2U);
  EXPECT_EQ(steps.of_steps, 2U);
  EXPECT_EQ(steps.tail_steps, 2U);
  EXPECT_DOUBLE_EQ(steps.iteration_gap_s, 40e-6);
  EXPECT_DOUBLE_EQ(steps.forward_backward_s, 40e-6);
  EXPECT_DOUBLE_EQ(steps.tail_s, 25e-6);
  EXPECT_DOUBLE_EQ(steps.communication_s, 27.5e-6);
  EXPECT_DOUBLE_EQ(steps.communication_overlap_s, 10e-6);
  ASSERT_EQ(steps.sequence.size(), 2U);
  EXPECT_EQ(steps.sequence[1].step, 1);
  EXPECT_EQ(steps.sequence[1].iteration_gap_s, 30e-6);
  EXPECT_EQ(steps.sequence[1].tail_s, 10e-6);
}

TEST(DeviceProfile, CutsStepsWhereTheUserSays) {
  const trace::Trace trace = analysis::device::two_steps().build();
  const auto device = device_profile(trace, nullptr, "train", {"Backward", "ncclDevKernel"});
  ASSERT_TRUE(device && device->steps);
  EXPECT_EQ(device->steps->fp_point, "Backward");
  EXPECT_EQ(device->steps->bp_point, "ncclDevKernel");
  EXPECT_EQ(device->steps->sequence[0].iteration_gap_s, 70e-6);
  EXPECT_EQ(device->steps->sequence[0].tail_s, 10e-6);
}

TEST(DeviceProfile, MeansAreOverStepsWithAPoint) {
  TraceBuilder builder;
  builder.step(0, 0, 100).call("cudaLaunchKernel", 1, 10, 2).kernel("gemm", 1, 20, 100);
  builder.step(1, 100, 50);  // computes nothing
  builder.step(2, 150, 50).call("cudaLaunchKernel", 2, 160, 2).kernel("gemm", 2, 170, 10);
  const auto device = device_profile(builder.build(), nullptr, "train");
  ASSERT_TRUE(device && device->steps);
  EXPECT_EQ(device->steps->steps, 2U);
  EXPECT_EQ(device->steps->of_steps, 3U);
  EXPECT_EQ(device->steps->tail_steps, 0U);
  EXPECT_DOUBLE_EQ(device->steps->iteration_gap_s, 20e-6);
  EXPECT_DOUBLE_EQ(device->steps->forward_backward_s, 55e-6) << "the tail is part of it";
  EXPECT_FALSE(device->steps->sequence[1].iteration_gap_s);
  EXPECT_EQ(device->step_notes.size(), 2U) << "no computation in one, no end of backward in three";
}

TEST(DeviceProfile, SaysThatATraceHasNoSteps) {
  const auto device = device_profile(TraceBuilder().kernel("gemm", 0, 5, 5).build(), nullptr, "train");
  ASSERT_TRUE(device);
  EXPECT_FALSE(device->steps);
  ASSERT_EQ(device->step_notes.size(), 1U);
  EXPECT_NE(device->step_notes[0].find("has no steps"), std::string::npos);
}

TEST(DeviceProfile, KeepsTheLastStepsOfMany) {
  TraceBuilder builder;
  for (int step = 0; step < 600; ++step) {
    builder.step(step, 100 * step, 100).call("cudaLaunchKernel", step + 1, 100 * step + 10, 2);
    builder.kernel("gemm", step + 1, 100 * step + 20, 80);
  }
  const auto device = device_profile(builder.build(), nullptr, "train");
  ASSERT_TRUE(device && device->steps);
  EXPECT_EQ(device->steps->of_steps, 600U);
  ASSERT_EQ(device->steps->sequence.size(), 512U);
  EXPECT_EQ(device->steps->sequence.front().step, 88);
  EXPECT_EQ(device->steps->sequence.back().step, 599);
}

}  // namespace
}  // namespace headrace::timeline
