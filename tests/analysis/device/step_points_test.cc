#include "headrace/analysis/device/step_points.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/device/trace_builder.h"
#include "analysis/device/two_steps.h"

namespace headrace::analysis::device {
namespace {

TEST(StepPoints, CutStepsByWhatTheDeviceDid) {
  const trace::Trace trace = two_steps().build();
  const auto [steps, average] = step_points(one(trace));
  EXPECT_EQ(steps.integers("step"), (Integers{0, 1}));
  EXPECT_EQ(steps.integers("start_ns"), (Integers{0, 130'000}));
  EXPECT_EQ(steps.integers("fp_ns"), (Integers{50'000, 160'000}));
  EXPECT_EQ(steps.integers("bp_ns"), (Integers{90'000, 200'000}));
  EXPECT_EQ(steps.integers("end_ns"), (Integers{130'000, 210'000}));
  EXPECT_EQ(steps.numbers("iteration_gap_s"), (Numbers{50e-6, 30e-6}));
  EXPECT_EQ(steps.numbers("forward_backward_s"), (Numbers{40e-6, 40e-6}));
  EXPECT_EQ(steps.numbers("tail_s"), (Numbers{40e-6, 10e-6}));
  EXPECT_EQ(steps.numbers("total_s"), (Numbers{130e-6, 80e-6}));
  EXPECT_EQ(steps.numbers("communication_s"), (Numbers{40e-6, 15e-6}));
  EXPECT_EQ(steps.numbers("communication_overlap_s"), (Numbers{10e-6, 10e-6}));
  ASSERT_EQ(average.rows(), 1U);
  EXPECT_DOUBLE_EQ(average.numbers("iteration_gap_s")[0], 40e-6);
  EXPECT_DOUBLE_EQ(average.numbers("tail_s")[0], 25e-6);
  EXPECT_EQ(average.integers("steps"), (Integers{2}));
  EXPECT_TRUE(steps.notes.empty());
}

TEST(StepPoints, TakeThePointsThatAreNamed) {
  const trace::Trace trace = two_steps().build();
  StepPointsOptions options;
  options.fp_point = "Backward";       // a range around the launch
  options.bp_point = "ncclDevKernel";  // the work itself
  const Table steps = step_points(one(trace), options).steps;
  EXPECT_EQ(steps.integers("fp_ns"), (Integers{70'000, 180'000}));
  EXPECT_EQ(steps.integers("bp_ns"), (Integers{120'000, 205'000}));
  options.bp_point = "nothing of that name";
  const Table without = step_points(one(trace), options).steps;
  EXPECT_TRUE(std::isnan(without.numbers("tail_s")[0]));
  EXPECT_EQ(without.notes,
            (std::vector<std::string>{"rank 0: 2 steps have no work called 'nothing of that name'"}));
}

TEST(StepPoints, BackwardEndsBeforeTheOptimizerWhereAutogradIsNotSeen) {
  TraceBuilder builder;
  builder.step(0, 0, 100).call("cudaLaunchKernel", 1, 10, 2).kernel("compiled", 1, 20, 30);
  builder.host("user_annotation", "Optimizer.step#Adam.step", 40, 20);
  builder.call("cudaLaunchKernel", 2, 45, 2).kernel("adam", 2, 60, 30);
  const Table steps = step_points(one(builder.build())).steps;
  EXPECT_EQ(steps.integers("bp_ns"), (Integers{50'000}));
  EXPECT_EQ(steps.numbers("tail_s"), (Numbers{40e-6}));
}

TEST(StepPoints, WithoutBackwardTheTailIsPartOfTheStep) {
  TraceBuilder builder;
  builder.step(0, 0, 100).call("cudaLaunchKernel", 1, 10, 2).kernel("compiled", 1, 20, 30);
  const Table steps = step_points(one(builder.build())).steps;
  EXPECT_EQ(steps.numbers("forward_backward_s"), (Numbers{30e-6}));
  EXPECT_TRUE(std::isnan(steps.numbers("tail_s")[0]));
  EXPECT_EQ(steps.integers("bp_ns"), (Integers{-1}));
  EXPECT_EQ(steps.notes.size(), 1U);
}

TEST(StepPoints, WithoutADeviceTheHostsOperatorsTell) {
  TraceBuilder builder;
  builder.step(0, 0, 100)
      .host("user_annotation", "enumerate(DataLoader)#Single.__next__", 0, 30)
      .host("cpu_op", "aten::stack", 5, 20)
      .host("cpu_op", "aten::linear", 35, 10)
      .host("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 50, 20, 2)
      .host("user_annotation", "Optimizer.step#SGD.step", 75, 20)
      .host("cpu_op", "aten::add_", 80, 10);
  const Table steps = step_points(one(builder.build())).steps;
  EXPECT_EQ(steps.numbers("iteration_gap_s"), (Numbers{35e-6}));
  EXPECT_EQ(steps.numbers("forward_backward_s"), (Numbers{35e-6}));
  EXPECT_EQ(steps.numbers("tail_s"), (Numbers{20e-6}));
  EXPECT_EQ(steps.notes,
            (std::vector<std::string>{
                "rank 0 has no work on a device: its points are those of operators on the host"}));
}

TEST(StepPoints, TracesWithoutStepsSaySo) {
  const auto [steps, average] = step_points(one(TraceBuilder().kernel("gemm", 0, 5, 5).build()));
  EXPECT_EQ(steps.rows(), 0U);
  EXPECT_EQ(average.rows(), 0U);
  EXPECT_EQ(steps.notes,
            (std::vector<std::string>{"rank 0 has no steps: call step() of the profiler after each"}));
}

TEST(StepPoints, AStepThatDidNothingHasATotalOnly) {
  TraceBuilder builder;
  builder.step(0, 0, 100).call("cudaLaunchKernel", 1, 10, 2).kernel("gemm", 1, 20, 100);
  builder.step(1, 100, 50);
  builder.step(2, 150, 50).call("cudaLaunchKernel", 2, 160, 2).kernel("gemm", 2, 170, 10);
  const Table steps = step_points(one(builder.build())).steps;
  EXPECT_EQ(steps.integers("start_ns"), (Integers{0, 120'000, 150'000}));
  EXPECT_EQ(steps.numbers("total_s"), (Numbers{120e-6, 30e-6, 30e-6}));
  EXPECT_TRUE(std::isnan(steps.numbers("iteration_gap_s")[1]));
}

}  // namespace
}  // namespace headrace::analysis::device
