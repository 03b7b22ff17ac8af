// The tables of when a device was busy, and with what.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "analysis/device/trace_builder.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/analysis/device/time_breakdown.h"

namespace headrace::analysis::device {
namespace {

/// gemm [10, 30) and [50, 60), an all-reduce [20, 40), a copy [38, 45), on three streams of device 0.
TraceBuilder three_streams() {
  TraceBuilder builder;
  builder.kernel("gemm", 0, 10, 20)
      .kernel("gemm", 0, 50, 10)
      .kernel("ncclDevKernel_AllReduce", 0, 20, 20, 20)
      .copy("Memcpy DtoH (Device -> Pinned)", 0, 38, 7, 21);
  return builder;
}

TEST(TimeBreakdown, SplitsTheSpanIntoComputeOtherAndIdle) {
  const trace::Trace trace = three_streams().rank(3).build();
  const Table table = time_breakdown(one(trace));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.integers("rank")[0], 3);
  EXPECT_DOUBLE_EQ(table.numbers("kernel_span_s")[0], 50e-6);
  EXPECT_DOUBLE_EQ(table.numbers("idle_s")[0], 5e-6);
  EXPECT_DOUBLE_EQ(table.numbers("compute_s")[0], 30e-6);
  EXPECT_DOUBLE_EQ(table.numbers("non_compute_s")[0], 15e-6);
  EXPECT_DOUBLE_EQ(table.numbers("idle_pct")[0], 10);
}

TEST(TimeBreakdown, KeepsDevicesApartWhenAsked) {
  const trace::Trace trace = three_streams().kernel("gemm", 0, 100, 100, 7, 1).build();
  EXPECT_DOUBLE_EQ(time_breakdown(one(trace)).numbers("kernel_span_s")[0], 190e-6);
  const Table table = time_breakdown(one(trace), {{}, true});
  EXPECT_EQ(table.integers("device"), (Integers{0, 1}));
  EXPECT_DOUBLE_EQ(table.numbers("kernel_span_s")[0], 50e-6);
  EXPECT_DOUBLE_EQ(table.numbers("idle_s")[1], 0);
}

TEST(TimeBreakdown, WaitsOnTheDevicesRowsAreNoWork) {
  const trace::Trace trace = three_streams().device("cuda_sync", "Stream Sync", 0, 45, 5).build();
  EXPECT_DOUBLE_EQ(time_breakdown(one(trace)).numbers("idle_s")[0], 5e-6);
}

TEST(TimeBreakdown, HostOperatorsWithAStreamAreNoWork) {
  const trace::Trace trace =
      three_streams().event("cpu_op", "triton_op", "100", "1", 500, 100, R"("stream": 0)").build();
  EXPECT_DOUBLE_EQ(time_breakdown(one(trace)).numbers("kernel_span_s")[0], 50e-6);
}

TEST(Overlap, IsTheShareOfCommunicationUnderComputation) {
  const trace::Trace trace = three_streams().build();
  const Table table = overlap(one(trace));
  EXPECT_DOUBLE_EQ(table.numbers("communication_s")[0], 20e-6);
  EXPECT_DOUBLE_EQ(table.numbers("overlap_s")[0], 10e-6);
  EXPECT_DOUBLE_EQ(table.numbers("overlap_pct")[0], 50);
}

TEST(Overlap, HasNoShareWithoutCommunication) {
  const trace::Trace trace = TraceBuilder().kernel("gemm", 0, 10, 20).build();
  const Table table = overlap(one(trace));
  EXPECT_TRUE(std::isnan(table.numbers("overlap_pct")[0]));
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_EQ(table.notes[0], "rank 0 has no communication");
}

std::string text_of(const Table& table, const char* name) {
  std::string text;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    text += (row == 0 ? "" : "|") + std::string(table.texts(name)[row]);
  }
  return text;
}

TEST(KernelBreakdown, PutsEachMomentIntoOneRow) {
  const trace::Trace trace = three_streams().build();
  const Table table = kernel_breakdown(one(trace));
  EXPECT_EQ(text_of(table, "kind"),
            "computation|computation overlapping communication|communication|memory|"
            "communication overlapping memory");
  EXPECT_EQ(table.numbers("total_s"), (Numbers{20e-6, 10e-6, 8e-6, 5e-6, 2e-6}));
  EXPECT_DOUBLE_EQ(table.numbers("total_pct")[1], 100.0 * 10 / 45);
}

TraceBuilder four_names() {
  TraceBuilder builder;
  builder.kernel("a", 0, 0, 10).kernel("a", 0, 20, 30).kernel("b", 0, 60, 5).kernel("b", 0, 70, 7);
  return builder.kernel("c", 0, 80, 2).copy("Memset", 0, 90, 1);
}

TEST(Kernels, CountsCallsByName) {
  const trace::Trace trace = four_names().build();
  const Table table = kernels(one(trace));
  EXPECT_EQ(text_of(table, "name"), "a|b|c|Memset");
  EXPECT_EQ(text_of(table, "kind"), "computation|computation|computation|memory");
  EXPECT_EQ(table.integers("calls"), (Integers{2, 2, 1, 1}));
  EXPECT_DOUBLE_EQ(table.numbers("total_s")[0], 40e-6);
  EXPECT_DOUBLE_EQ(table.numbers("mean_s")[0], 20e-6);
  EXPECT_NEAR(table.numbers("std_s")[0], 14.1421356e-6, 1e-12);
  EXPECT_DOUBLE_EQ(table.numbers("min_s")[1], 5e-6);
  EXPECT_DOUBLE_EQ(table.numbers("max_s")[1], 7e-6);
  EXPECT_TRUE(std::isnan(table.numbers("std_s")[2]));
}

TEST(Kernels, FoldedNamesKeepTheFiguresOfTheirCalls) {
  const trace::Trace trace = four_names().build();
  KernelsOptions options;
  options.most_names = 1;
  options.memory = false;
  const Table table = kernels(one(trace), options);
  EXPECT_EQ(text_of(table, "name"), "a|others");
  EXPECT_EQ(table.integers("calls"), (Integers{2, 3}));
  EXPECT_DOUBLE_EQ(table.numbers("total_s")[1], 14e-6);
  EXPECT_DOUBLE_EQ(table.numbers("min_s")[1], 2e-6);
  EXPECT_DOUBLE_EQ(table.numbers("max_s")[1], 7e-6);
  EXPECT_NEAR(table.numbers("std_s")[1], 2.516611478e-6, 1e-12);  // of 5, 7 and 2
  EXPECT_DOUBLE_EQ(table.numbers("max_s")[0], 30e-6);
}

TEST(Kernels, ShowsAsManyNamesAsCoverTheShareOfTheTime) {
  const trace::Trace trace = four_names().build();
  KernelsOptions options;
  options.memory = false;
  options.time_share = 0.7;  // a: 40 of 54
  EXPECT_EQ(text_of(kernels(one(trace), options), "name"), "a|others");
  options.time_share = 0.75;
  EXPECT_EQ(text_of(kernels(one(trace), options), "name"), "a|b|others");
}

/// Steps of 100 us, in each of which `works` kernels of 5 us are launched; they run 60 us later.
trace::Trace with_steps(std::initializer_list<int> works) {
  TraceBuilder builder;
  int step = 0;
  int correlation = 1;
  for (const int count : works) {
    builder.step(step, 100 * step, 100);
    for (int i = 0; i < count; ++i, ++correlation) {
      builder.call("cudaLaunchKernel", correlation, 100 * step + 10 * i + 1, 5);
      builder.kernel("gemm", correlation, 100 * step + 10 * i + 61, 5);
    }
    ++step;
  }
  return builder.build();
}

TEST(Steps, HoldTheWorkThatWasLaunchedInThem) {
  const trace::Trace trace = with_steps({4, 5, 5});
  const Table table = steps(one(trace));
  EXPECT_EQ(table.integers("step"), (Integers{0, 1, 2}));
  EXPECT_EQ(table.integers("works"), (Integers{4, 5, 5}));
  EXPECT_EQ(table.integers("complete"), (Integers{1, 1, 1}));
  EXPECT_EQ(table.integers("device_start_ns")[1], 161000);
  EXPECT_DOUBLE_EQ(table.numbers("duration_s")[1], 100e-6);
  EXPECT_DOUBLE_EQ(table.numbers("device_span_s")[1], 45e-6);
  EXPECT_DOUBLE_EQ(table.numbers("device_busy_s")[1], 25e-6);
  EXPECT_DOUBLE_EQ(table.numbers("computation_s")[0], 20e-6);
}

TEST(Steps, TheLastOneIsKeptUnlessItIsCutOff) {
  const trace::Trace whole = with_steps({5, 5});
  EXPECT_EQ(kernels(one(whole)).integers("calls"), (Integers{10}));
  const trace::Trace cut = with_steps({5, 5, 3});
  EXPECT_EQ(steps(one(cut)).integers("complete"), (Integers{1, 1, 0}));
  const Table table = kernels(one(cut));
  EXPECT_EQ(table.integers("calls"), (Integers{10}));
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_EQ(table.notes[0], "rank 0: the last step (ProfilerStep#2) is cut off and left out");
  KernelsOptions options;
  options.scope.keep_cut_off_step = true;
  EXPECT_EQ(kernels(one(cut), options).integers("calls"), (Integers{13}));
}

TEST(Scope, TakesStepsAndTimes) {
  const trace::Trace trace = with_steps({4, 5, 5});
  KernelsOptions options;
  options.scope.steps = {0, 2};
  EXPECT_EQ(kernels(one(trace), options).integers("calls"), (Integers{9}));
  options.scope.steps = {7};
  const Table none = kernels(one(trace), options);
  EXPECT_EQ(none.rows(), 0U);
  EXPECT_EQ(none.notes[0], "rank 0 has no step 7");
  options.scope.steps.clear();
  options.scope.begin_ns = 121'000;  // by launch, not by when it ran
  options.scope.end_ns = 211'000;
  EXPECT_EQ(kernels(one(trace), options).integers("calls"), (Integers{4}));
}

TEST(Scope, WhatHasNoLaunchLiesInTheStepInWhichItBegan) {
  const trace::Trace trace = TraceBuilder()
                                 .step(1, 0, 100)
                                 .step(2, 100, 100)
                                 .kernel("gemm", 0, 20, 10)
                                 .kernel("gemm", 0, 120, 10)
                                 .kernel("gemm", 0, 130, 10)
                                 .kernel("gemm", 0, 230, 10)
                                 .device("gpu_user_annotation", "forward", 0, 119, 12)
                                 .device("gpu_user_annotation", "forward", 0, 219, 12)
                                 .build();
  KernelsOptions options;
  options.scope.steps = {2};
  EXPECT_EQ(kernels(one(trace), options).integers("calls"), (Integers{2}));
  AnnotationsOptions ranges;
  ranges.scope.steps = {2};
  const Annotations found = annotations(one(trace), ranges);
  EXPECT_EQ(found.ranges.integers("calls"), (Integers{1}));
  EXPECT_EQ(found.kernels.texts("annotation")[0], "");
  EXPECT_EQ(found.kernels.texts("annotation")[1], "forward");
}

}  // namespace
}  // namespace headrace::analysis::device
