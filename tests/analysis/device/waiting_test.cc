// The tables of what happened between the host's call and the device's work.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/device/trace_builder.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory.h"
#include "headrace/analysis/device/time_breakdown.h"

namespace headrace::analysis::device {
namespace {

/// Kernels 1 [10, 110), 2 inside of 1, 3 [120, 130) launched in time, 4 [200, 210) launched in time but long
/// after, 5 [300, 310) launched at 290.
TraceBuilder five_kernels() {
  TraceBuilder builder;
  builder.call("cudaLaunchKernel", 1, 0, 4)
      .call("cudaLaunchKernel", 2, 5, 4)
      .call("cuLaunchKernelEx", 3, 10, 4)
      .call("hipLaunchKernel", 4, 15, 4)
      .call("cudaLaunchKernel", 5, 290, 4);
  builder.kernel("k", 1, 10, 100).kernel("k", 2, 20, 5).kernel("k", 3, 120, 10).kernel("k", 4, 200, 10);
  return builder.kernel("k", 5, 300, 10);
}

TEST(IdleBreakdown, SortsGapsByWhatTheStreamWaitedFor) {
  const trace::Trace trace = five_kernels().build();
  IdleBreakdownOptions options;
  options.interval_statistics = true;
  const auto [idle, intervals] = idle_breakdown(one(trace), options);
  ASSERT_EQ(idle.rows(), 3U);
  EXPECT_EQ(idle.integers("stream"), (Integers{7, 7, 7}));
  EXPECT_EQ(idle.texts("category")[0], "host_wait");
  EXPECT_EQ(idle.texts("category")[1], "kernel_wait");
  EXPECT_EQ(idle.texts("category")[2], "other");
  EXPECT_EQ(idle.integers("gaps"), (Integers{1, 1, 1}));
  EXPECT_DOUBLE_EQ(idle.numbers("idle_s")[0], 90e-6);
  EXPECT_DOUBLE_EQ(idle.numbers("idle_s")[1], 10e-6);  // behind the end of 1, not of 2
  EXPECT_DOUBLE_EQ(idle.numbers("idle_s")[2], 70e-6);
  EXPECT_DOUBLE_EQ(idle.numbers("idle_pct")[0], 100.0 * 90 / 170);
  EXPECT_DOUBLE_EQ(intervals.numbers("p50_s")[2], 70e-6);
  EXPECT_EQ(intervals.integers("count")[0], 1);
}

TEST(IdleBreakdown, AStreamThatIsNeverIdleHasNoShares) {
  const trace::Trace trace = TraceBuilder().kernel("k", 0, 0, 5).build();
  const Table idle = idle_breakdown(one(trace)).idle;
  ASSERT_EQ(idle.rows(), 3U);
  EXPECT_EQ(idle.numbers("idle_s"), (Numbers{0, 0, 0}));
  EXPECT_TRUE(std::isnan(idle.numbers("idle_pct")[0]));
}

TEST(QueueLength, RisesAtTheLaunchAndFallsAtTheStart) {
  const trace::Trace trace = five_kernels().build();
  QueueLengthOptions options;
  options.capacity = 2;
  const auto [series, summary] = queue_length(one(trace), options);
  EXPECT_EQ(series.integers("time_ns"),
            (Integers{0, 5000, 10000, 10000, 15000, 20000, 120000, 200000, 290000, 300000}));
  EXPECT_EQ(series.integers("queue_length"), (Integers{1, 2, 3, 2, 3, 2, 1, 0, 1, 0}));
  EXPECT_EQ(summary.integers("launches"), (Integers{5}));
  EXPECT_EQ(summary.integers("max"), (Integers{3}));
  // 1 for 5 us, 2 for 5, 2 for 5, 3 for 5, 2 for 100, 1 for 80, 0 for 90, 1 for 10
  EXPECT_DOUBLE_EQ(summary.numbers("mean")[0], (5 + 10 + 10 + 15 + 200 + 80 + 10) / 300.0);
  EXPECT_DOUBLE_EQ(summary.numbers("p50")[0], 1);
  EXPECT_DOUBLE_EQ(summary.numbers("full_s")[0], 115e-6);
  EXPECT_DOUBLE_EQ(summary.numbers("full_pct")[0], 100.0 * 115 / 300);
}

TEST(QueueLength, EachKernelOfAGraphWaitsByItself) {
  const trace::Trace trace = TraceBuilder()
                                 .call("cudaGraphLaunch", 1, 0, 4)
                                 .kernel("a", 1, 10, 5)
                                 .kernel("b", 1, 20, 5)
                                 .kernel("never launched", 0, 30, 5)
                                 .build();
  const auto [series, summary] = queue_length(one(trace));
  EXPECT_EQ(series.integers("queue_length"), (Integers{1, 2, 1, 0}));
  EXPECT_EQ(summary.integers("launches"), (Integers{2}));
  ASSERT_EQ(summary.notes.size(), 1U);
}

TEST(QueueLength, IsNeverNegativeWhereClocksDisagree) {
  const trace::Trace trace =
      TraceBuilder().call("cudaLaunchKernel", 1, 10, 4).kernel("early", 1, 8, 5).build();
  EXPECT_EQ(queue_length(one(trace)).series.integers("queue_length"), (Integers{1, 0}));
}

TEST(Launches, TieCallsToTheirWork) {
  const trace::Trace trace = five_kernels()
                                 .call("cudaGraphLaunch", 6, 400, 10)
                                 .kernel("a", 6, 405, 5)
                                 .kernel("b", 6, 420, 7)
                                 .call("cudaMemcpyAsync", 7, 430, 3)
                                 .copy("Memcpy HtoD", 7, 440, 2)
                                 .build();
  const Table table = launches(one(trace));
  EXPECT_EQ(table.integers("correlation"), (Integers{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(table.texts("name")[2], "cuLaunchKernelEx");
  EXPECT_EQ(table.texts("name")[3], "hipLaunchKernel");
  EXPECT_EQ(table.integers("works")[5], 2);
  EXPECT_DOUBLE_EQ(table.numbers("device_s")[5], 12e-6);
  EXPECT_DOUBLE_EQ(table.numbers("delay_s")[5], 0);
  EXPECT_DOUBLE_EQ(table.numbers("delay_s")[0], 6e-6);
  EXPECT_DOUBLE_EQ(table.numbers("host_s")[6], 3e-6);
  EXPECT_EQ(trace.columns().name_of(static_cast<trace::Row>(table.integers("device_row")[6])), "Memcpy HtoD");
  LaunchesOptions options;
  options.memory = false;
  EXPECT_EQ(launches(one(trace), options).rows(), 6U);
}

TEST(MemoryBandwidth, WeighsEachLevelWithItsTime) {
  const trace::Trace trace = TraceBuilder()
                                 .copy("Memcpy HtoD (Pinned -> Device)", 0, 0, 10, 7,
                                       R"x("bytes": 100000, "memory bandwidth (GB/s)": 10)x")
                                 .copy("Memcpy HtoD (Pageable -> Device)", 0, 5, 10, 8, R"x("bytes": 20000)x")
                                 .copy("Memcpy HtoD (Pinned -> Device)", 0, 100, 0, 7,
                                       R"x("bytes": 4, "memory bandwidth (GB/s)": 900)x")
                                 .copy("Memcpy DtoH (Device -> Pinned)", 0, 200, 5, 7)
                                 .build();
  const auto [series, summary] = memory_bandwidth(one(trace));
  EXPECT_EQ(series.integers("time_ns"), (Integers{0, 5000, 10000, 15000}));
  EXPECT_EQ(series.numbers("bandwidth_gbps"), (Numbers{10, 12, 2, 0}));
  ASSERT_EQ(summary.rows(), 2U);
  EXPECT_EQ(summary.texts("name")[1], "Memcpy HtoD");
  EXPECT_EQ(summary.integers("copies"), (Integers{1, 3}));
  EXPECT_EQ(summary.integers("bytes"), (Integers{0, 120004}));
  EXPECT_DOUBLE_EQ(summary.numbers("busy_s")[1], 15e-6);
  EXPECT_DOUBLE_EQ(summary.numbers("mean_gbps")[1], 8);
  EXPECT_DOUBLE_EQ(summary.numbers("max_gbps")[1], 12);
  EXPECT_TRUE(std::isnan(summary.numbers("mean_gbps")[0]));
  EXPECT_EQ(summary.notes.size(), 1U);
}

TEST(MemoryBandwidth, DirectionsAreWhatStandsBeforeTheBrackets) {
  const trace::Trace trace = TraceBuilder()
                                 .copy("Memcpy M2D(USM -> Device)", 0, 0, 10, 7, R"x("bytes": 100)x")
                                 .copy("Memcpy M2D(Host -> Device)", 0, 20, 10, 7, R"x("bytes": 100)x")
                                 .copy("Memcpy PtoP (Device 0 -> Device 1)", 0, 40, 10, 7, R"x("bytes": 5)x")
                                 .copy("CopyHostToDevice", 0, 60, 10, 7, R"x("bytes": 7)x")
                                 .build();
  const Table table = memory_bandwidth(one(trace)).summary;
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(table.texts("name")[0], "CopyHostToDevice");
  EXPECT_EQ(table.texts("name")[1], "Memcpy M2D");
  EXPECT_EQ(table.texts("name")[2], "Memcpy PtoP");
  EXPECT_EQ(table.integers("bytes"), (Integers{7, 200, 5}));
}

}  // namespace
}  // namespace headrace::analysis::device
