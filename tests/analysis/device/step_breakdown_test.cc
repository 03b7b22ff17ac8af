#include "headrace/analysis/device/steps.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "analysis/device/trace_builder.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

using Microseconds = std::array<std::int64_t, 9>;

Microseconds microseconds_of(const Table& table, std::size_t row) {
  static constexpr std::array<const char*, 9> kColumns = {"kernel_s",        "memcpy_s",  "memset_s",
                                                          "communication_s", "runtime_s", "data_loader_s",
                                                          "cpu_s",           "other_s",   "total_s"};
  Microseconds figures{};
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    figures[i] = std::llround(table.numbers(kColumns[i])[row] * 1e6);
  return figures;
}

TEST(StepBreakdown, EachMomentCountsForTheFirstActiveRole) {
  const trace::Trace trace = TraceBuilder()
                                 .step(1, 100, 100)
                                 .host("user_annotation", "enumerate(DataLoader)#_Single.__next__", 100, 40)
                                 .host("cpu_op", "aten::mm", 150, 30)
                                 .call("cudaLaunchKernel", 1, 160, 10)
                                 .kernel("gemm", 1, 165, 25)
                                 .build();
  const StepBreakdown answer = step_breakdown(one(trace));
  ASSERT_EQ(answer.steps.rows(), 1U);
  EXPECT_EQ(microseconds_of(answer.steps, 0), (Microseconds{25, 0, 0, 0, 5, 40, 10, 20, 100}));
}

TEST(StepBreakdown, AStepReachesUntilItsWorkIsDone) {
  const trace::Trace trace = TraceBuilder()
                                 .step(1, 100, 100)
                                 .call("cudaLaunchKernel", 1, 150, 10)
                                 .kernel("gemm", 1, 165, 100)
                                 .step(2, 200, 100)
                                 .call("cudaLaunchKernel", 2, 210, 10)
                                 .kernel("gemm", 2, 270, 100)
                                 .build();
  const StepBreakdown answer = step_breakdown(one(trace));
  ASSERT_EQ(answer.steps.rows(), 2U);
  EXPECT_EQ(microseconds_of(answer.steps, 0)[8], 165);
  EXPECT_EQ(microseconds_of(answer.steps, 1)[8], 105);
  EXPECT_EQ(microseconds_of(answer.steps, 1)[0], 100);
}

TEST(StepBreakdown, AStepWhoseWorkIsDoneBeforeTheStepBeforeItsHasNoTime) {
  const trace::Trace trace = TraceBuilder()
                                 .step(1, 0, 100)
                                 .call("cudaLaunchKernel", 1, 10, 10)
                                 .kernel("gemm", 1, 50, 450)
                                 .step(2, 100, 100)
                                 .call("cudaLaunchKernel", 2, 110, 10)
                                 .kernel("relu", 2, 130, 20, 8)
                                 .step(3, 200, 400)
                                 .call("cudaLaunchKernel", 3, 210, 10)
                                 .kernel("gemm", 3, 520, 80)
                                 .build();
  const StepBreakdown answer = step_breakdown(one(trace));
  ASSERT_EQ(answer.steps.rows(), 3U);
  EXPECT_EQ(microseconds_of(answer.steps, 0)[8], 500);
  EXPECT_EQ(microseconds_of(answer.steps, 1)[8], 0);
  // What the device did for the first step is not counted again for the third.
  EXPECT_EQ(microseconds_of(answer.steps, 2)[8], 100);
  EXPECT_EQ(microseconds_of(answer.steps, 2)[0], 80);
}

TEST(StepBreakdown, StepsThatOverlapOnTheHostEachHaveTheirRoles) {
  const trace::Trace trace = TraceBuilder()
                                 .step(1, 0, 100)
                                 .step(2, 50, 100)
                                 .host("cpu_op", "aten::mm", 20, 20)
                                 .host("cpu_op", "aten::mm", 60, 60)
                                 .build();
  const StepBreakdown answer = step_breakdown(one(trace));
  ASSERT_EQ(answer.steps.rows(), 2U);
  EXPECT_EQ(microseconds_of(answer.steps, 0), (Microseconds{0, 0, 0, 0, 0, 0, 60, 40, 100}));
  EXPECT_EQ(microseconds_of(answer.steps, 1), (Microseconds{0, 0, 0, 0, 0, 0, 60, 40, 100}));
}

TEST(StepBreakdown, AKernelOfACollectiveIsCommunication) {
  const trace::Trace trace =
      TraceBuilder()
          .step(1, 0, 100)
          .event("cpu_op", "nccl:all_reduce", "100", "1", 10, 10, R"("External id": 5)")
          .call("cudaLaunchKernel", 1, 12, 5)
          .device("kernel", "ncclKernel_AllReduce", 1, 20, 50, 7, 0, R"("External id": 5)")
          .build();
  const StepBreakdown answer = step_breakdown(one(trace));
  EXPECT_EQ(microseconds_of(answer.steps, 0), (Microseconds{0, 0, 0, 60, 0, 0, 0, 40, 100}));
}

TEST(StepBreakdown, StepsWhoseWorkIsMissingAreLeftOut) {
  TraceBuilder builder;
  int correlation = 0;
  for (int step = 0; step < 3; ++step) {
    builder.step(step, 1000.0 * step, 1000);
    for (int i = 0; i < (step == 2 ? 7 : 10); ++i) {
      const double at = 1000.0 * step + 10 * i;
      ++correlation;
      builder.call("cudaLaunchKernel", correlation, at, 5).kernel("k", correlation, at + 6, 4);
    }
  }
  builder.step(3, 3000, 1000);
  const trace::Trace trace = builder.build();
  EXPECT_EQ(step_breakdown(one(trace)).steps.integers("step"), (Integers{0, 1}));
}

TEST(StepBreakdown, WithoutStepsTheWholeTraceIsOne) {
  const trace::Trace trace =
      TraceBuilder().host("cpu_op", "aten::mm", 100, 30).host("cpu_op", "aten::add", 150, 50).build();
  const StepBreakdown answer = step_breakdown(one(trace));
  ASSERT_EQ(answer.steps.rows(), 1U);
  EXPECT_EQ(microseconds_of(answer.steps, 0), (Microseconds{0, 0, 0, 0, 0, 0, 80, 20, 100}));
  EXPECT_FALSE(answer.steps.notes.empty());
}

TEST(StepBreakdown, WithoutEventsThereIsANote) {
  const trace::Trace nothing = TraceBuilder().build();
  const StepBreakdown answer = step_breakdown(one(nothing));
  EXPECT_EQ(answer.steps.rows(), 0U);
  EXPECT_FALSE(answer.steps.notes.empty());
}

/// The plugin's own figures (reference: shared text on device traces, section 3).
TEST(PluginSamples, WithoutWorkersTheStepsWaitForInput) {
  const std::string path = trace::conformance_file("kineto/resnet50_workers0.json.gz");
  HEADRACE_NEEDS_FILE(path);
  const trace::Trace trace = trace::load_trace(path);
  const StepBreakdown answer = step_breakdown(one(trace));
  const std::array<Microseconds, 6> expected = {{{98598, 1941, 90, 0, 2796, 69317, 14091, 1115, 187948},
                                                 {98570, 1947, 89, 0, 2762, 57669, 12968, 1148, 175153},
                                                 {98596, 1931, 91, 0, 2877, 61257, 13768, 1213, 179733},
                                                 {98623, 1938, 89, 0, 2841, 56453, 13420, 1200, 174564},
                                                 {98504, 1937, 87, 0, 2788, 62690, 15025, 1141, 182172},
                                                 {98641, 1798, 88, 0, 3381, 48185, 12773, 1117, 165983}}};
  ASSERT_EQ(answer.steps.integers("step"), (Integers{5, 6, 7, 8, 9, 10}));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(microseconds_of(answer.steps, i), expected[i]) << i;
  ASSERT_EQ(answer.average.texts("role")[5], "data_loader");
  EXPECT_NEAR(answer.average.numbers("share_pct")[5], 33.37, 0.005);
}

TEST(PluginSamples, WithWorkersTheyDoNot) {
  const std::string path = trace::conformance_file("kineto/resnet50_workers4.json.gz");
  HEADRACE_NEEDS_FILE(path);
  const trace::Trace trace = trace::load_trace(path);
  const StepBreakdown answer = step_breakdown(one(trace));
  const std::array<Microseconds, 6> expected = {{{99778, 3606, 98, 0, 41028, 4341, 27460, 5995, 182306},
                                                 {99208, 2948, 98, 0, 3406, 0, 16404, 4119, 126183},
                                                 {99114, 2949, 98, 0, 3417, 6, 19521, 2076, 127181},
                                                 {99021, 2975, 97, 0, 3544, 0, 15464, 1978, 123079},
                                                 {98791, 3596, 97, 0, 8275, 1370, 43905, 7427, 163461},
                                                 {98956, 2885, 98, 0, 3714, 1400, 13235, 3910, 124198}}};
  ASSERT_EQ(answer.steps.rows(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(microseconds_of(answer.steps, i), expected[i]) << i;
}

}  // namespace
}  // namespace headrace::analysis::device
