// What steps are made of, against sums made by hand and the profiler's own file.
#include "headrace/analysis/device/steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "analysis/device/trace_builder.h"
#include "trace/ascend/small_run.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

TEST(StepTime, OfAnyProfiler) {
  TraceBuilder builder;
  builder.step(1, 0, 100).call("cudaLaunchKernel", 1, 10, 2).call("cudaLaunchKernel", 2, 14, 2);
  builder.kernel("gemm", 1, 20, 30).kernel("ncclDevKernel_AllReduce", 2, 40, 40, 9);
  // Runs in the time of the second step, but the first one launched it.
  builder.call("cudaLaunchKernel", 3, 90, 2).step(2, 100, 100).kernel("gemm", 3, 105, 5);
  builder.call("cudaLaunchKernel", 4, 110, 2).kernel("gemm", 4, 120, 10);
  const trace::Trace trace = builder.build();
  const Table table = step_time(one(trace));
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.integers("step"), (Integers{1, 2}));
  EXPECT_DOUBLE_EQ(table.numbers("computing_s")[0], 35e-6);
  EXPECT_DOUBLE_EQ(table.numbers("communication_s")[0], 40e-6);
  EXPECT_DOUBLE_EQ(table.numbers("overlapped_s")[0], 10e-6);
  EXPECT_DOUBLE_EQ(table.numbers("communication_not_overlapped_s")[0], 30e-6);
  EXPECT_DOUBLE_EQ(table.numbers("free_s")[0], 25e-6);
  EXPECT_DOUBLE_EQ(table.numbers("stage_s")[0], 90e-6);
  EXPECT_DOUBLE_EQ(table.numbers("preparing_s")[0], 20e-6);
  EXPECT_DOUBLE_EQ(table.numbers("computing_s")[1], 10e-6);
  EXPECT_DOUBLE_EQ(table.numbers("preparing_s")[1], 10e-6);  // 10 us of it the first step was still at work
}

TEST(StepTime, ReceivesOfAPipelineAreBubbles) {
  std::string text = trace::ascend::small_trace_view();
  const std::string name = "hcom_allReduce__271_0_1";
  text.replace(text.find(name), name.size(), "hcom_receive__271_0_1");
  const trace::Trace trace = TraceBuilder::trace_of(text);
  const Table table = step_time(one(trace));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_DOUBLE_EQ(table.numbers("bubble_s")[0], 40e-6);
  EXPECT_DOUBLE_EQ(table.numbers("stage_s")[0], 40e-6);  // 80 us from MatMul to Add
  EXPECT_DOUBLE_EQ(table.numbers("not_overlapped_exclude_receive_s")[0], -30e-6);
}

TEST(StepTime, TheProfilersOwnSumsComeFirst) {
  // The kernel's duration is rounded in its own row: its sum is not.
  const std::string rows = R"json(,
{"ph":"X","name":"Computing","pid":102883,"tid":0,"ts":"1000300.000","dur":40.002},
{"ph":"X","name":"Computing","pid":102883,"tid":0,"ts":"1000350.000","dur":30.001},
{"ph":"X","name":"Communication","pid":102883,"tid":1,"ts":"1000330.000","dur":40.004},
{"ph":"X","name":"Communication(Not Overlapped)","pid":102883,"tid":2,"ts":"1000340.002","dur":9.998})json";
  const trace::Trace trace =
      TraceBuilder::trace_of(trace::ascend::with_overlap_analysis(trace::ascend::small_trace_view(), rows));
  const Table table = step_time(one(trace));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.integers("step")[0], 7);
  EXPECT_DOUBLE_EQ(table.numbers("computing_s")[0], 70.003e-6);
  EXPECT_DOUBLE_EQ(table.numbers("communication_s")[0], 40.004e-6);
  EXPECT_DOUBLE_EQ(table.numbers("communication_not_overlapped_s")[0], 9.998e-6);
  EXPECT_DOUBLE_EQ(table.numbers("free_s")[0], 0);
  EXPECT_DOUBLE_EQ(table.numbers("preparing_s")[0], 300e-6);
}

TEST(StepTime, WithoutStepsThereIsOneRow) {
  TraceBuilder builder;
  builder.kernel("gemm", 0, 20, 30);
  const trace::Trace trace = builder.build();
  const Table table = step_time(one(trace));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.integers("step")[0], -1);
  EXPECT_TRUE(std::isnan(table.numbers("preparing_s")[0]));
}

/// Microseconds of step_trace_time.csv, to the nanosecond; Stage and Preparing have a grain of 0.25 there.
struct Expected {
  const char* folder;
  double computing, exposed, overlapped, communication, free, stage, preparing;
};

void compare(const Expected& expected, double grain_us) {
  const std::string path = trace::conformance_file(expected.folder);
  HEADRACE_NEEDS_FILE(path);
  const trace::Trace trace = trace::load_trace(path);
  const Table table = step_time(one(trace));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.integers("step")[0], 50);
  const auto us = [&](const char* column) { return table.numbers(column)[0] * 1e6; };
  EXPECT_NEAR(us("computing_s"), expected.computing, 1e-6);
  EXPECT_NEAR(us("communication_not_overlapped_s"), expected.exposed, 1e-6);
  EXPECT_NEAR(us("overlapped_s"), expected.overlapped, 1e-6);
  EXPECT_NEAR(us("communication_s"), expected.communication, 1e-6);
  EXPECT_NEAR(us("free_s"), expected.free, 1e-6);
  EXPECT_NEAR(us("stage_s"), expected.stage, grain_us);
  EXPECT_NEAR(us("preparing_s"), expected.preparing, grain_us);
  EXPECT_EQ(us("bubble_s"), 0);
}

TEST(StepTime, OfTheTextSampleRank0) {
  compare({"ascend/text_level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", 8868.24, 95962.016,
           4011.262, 99973.278, 25032.619, 129862.75, 17483.75},
          0.25);
}
TEST(StepTime, OfTheTextSampleRank1) {
  compare({"ascend/text_level2/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", 8902.301, 93411.782,
           4043.544, 97455.326, 26441.689, 128755.75, 18325.5},
          0.25);
}
TEST(StepTime, OfTheDatabaseRank0ToTheNanosecond) {
  compare({"ascend/db_level1/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db", 8903.431,
           98071.947, 4036.153, 102108.1, 25258.144, 132233.522, 18055.693},
          1e-6);
}
TEST(StepTime, OfTheDatabaseRank1ToTheNanosecond) {
  compare({"ascend/db_level1/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db", 8915.634,
           94556.05, 4034.14, 98590.19, 25840.499, 129312.183, 17512.827},
          1e-6);
}

}  // namespace
}  // namespace headrace::analysis::device
