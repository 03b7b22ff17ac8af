// Every table answers every trace: with no rows and a note where there is nothing to say.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/device/trace_builder.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/critical_path.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/step_points.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/analysis/device/time_breakdown.h"

namespace headrace::analysis::device {
namespace {

/// The tables that begin with the device's work, the one with the notes of each.
std::vector<Table> tables_of_work(const trace::Trace& trace) {
  return {time_breakdown(one(trace)),
          overlap(one(trace)),
          kernel_breakdown(one(trace)),
          kernels(one(trace)),
          idle_breakdown(one(trace)).idle,
          queue_length(one(trace)).summary,
          memory_bandwidth(one(trace)).summary,
          launches(one(trace)),
          annotations(one(trace)).kernels,
          operator_sequences(one(trace)),
          device_idle(trace, loader_waits(trace)).steps};
}

void expect_nothing(std::string_view text) {
  const trace::Trace trace = TraceBuilder::trace_of(text);
  for (const Table& table : tables_of_work(trace)) {
    EXPECT_EQ(table.rows(), 0U) << text;
    ASSERT_FALSE(table.notes.empty()) << text;
    EXPECT_EQ(table.notes.back(), "rank 0 has no work on a device");
  }
  // These have more to say than that; none may be silent.
  for (const Table& table : {steps(one(trace)), step_points(one(trace)).steps, annotations(one(trace)).ranges,
                             sequences(one(trace), {}), stragglers(one(trace)), critical_path(trace).path}) {
    if (table.rows() == 0) {
      EXPECT_FALSE(table.notes.empty()) << text;
    }
  }
  EXPECT_TRUE(critical_path(trace).valid());
  EXPECT_EQ(diff(trace, trace).rows() == 0, !diff(trace, trace).notes.empty());
}

TEST(BadInput, TracesWithoutDeviceWorkGiveEmptyTablesAndSaySo) {
  expect_nothing(R"({"traceEvents": []})");
  expect_nothing(R"([])");
  expect_nothing(
      R"({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]})");
  expect_nothing(
      R"([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 3}])");
  expect_nothing(R"([{"ph": "X", "name": "no category", "pid": "Spans", "tid": "x", "ts": 5, "dur": 3}])");
  expect_nothing(
      R"([{"ph": "X", "cat": "kernel", "name": "negative", "pid": 0, "tid": 7, "ts": 5, "dur": -3, "args": {}}])");
}

TEST(BadInput, NoTraceAtAllIsAnEmptyTable) {
  EXPECT_EQ(time_breakdown({}).rows(), 0U);
  EXPECT_EQ(kernels({}).rows(), 0U);
  EXPECT_EQ(queue_length({}).series.rows(), 0U);
  EXPECT_EQ(steps({}).rows(), 0U);
}

TEST(BadInput, WorkOfNoDurationHasNoTime) {
  const trace::Trace trace = TraceBuilder().kernel("k", 0, 5, 0).kernel("k", 0, 5, 0).build();
  const Table table = time_breakdown(one(trace));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_DOUBLE_EQ(table.numbers("kernel_span_s")[0], 0);
  EXPECT_TRUE(std::isnan(table.numbers("idle_pct")[0]));
  EXPECT_EQ(kernels(one(trace)).integers("calls"), (Integers{2}));
  EXPECT_EQ(kernel_breakdown(one(trace)).rows(), 0U);
}

TEST(BadInput, StreamsAndDevicesMayHaveNames) {
  const trace::Trace trace =
      TraceBuilder()
          .event("kernel", "k", R"("GPU 2")", R"("stream 7")", 0, 5)
          .event("kernel", "k", R"("GPU 2")", R"("stream 9")", 10, 5)
          .event("kernel", "k", R"("the device")", R"("compute")", 20, 5, R"("stream": "0x0")")
          .build();
  const Table table = idle_breakdown(one(trace)).idle;
  ASSERT_EQ(table.rows(), 9U);
  EXPECT_EQ(table.integers("device"), (Integers{-1, -1, -1, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(table.integers("stream"), (Integers{-1, -1, -1, 7, 7, 7, 9, 9, 9}));
}

TEST(BadInput, RowsThatSeveralDevicesShareAreKeptApartByTheirArgument) {
  const trace::Trace trace = TraceBuilder()
                                 .event("kernel", "gemm", "55", "7", 0, 10, R"("device": 0, "stream": 7)")
                                 .event("kernel", "gemm", "55", "7", 20, 30, R"("device": 1, "stream": 7)")
                                 .event("kernel", "gemm", "55", "7", 60, 20, R"("device": 0, "stream": 7)")
                                 .build();
  DeviceOptions options;
  options.per_device = true;
  const Table table = time_breakdown(one(trace), options);
  EXPECT_EQ(table.integers("device"), (Integers{0, 1}));
  EXPECT_DOUBLE_EQ(table.numbers("compute_s")[0], 30e-6);
  EXPECT_DOUBLE_EQ(table.numbers("compute_s")[1], 30e-6);
}

TEST(BadInput, ACutFileLosesItsLastStepOnly) {
  TraceBuilder builder;
  builder.step(1, 0, 100).call("cudaLaunchKernel", 1, 10, 1).kernel("k", 1, 20, 5);
  builder.step(2, 100, 100).call("cudaLaunchKernel", 2, 110, 1).kernel("k", 2, 120, 5);
  const std::string text = builder.text();
  const trace::Trace trace = TraceBuilder::trace_of(std::string_view(text).substr(0, text.size() - 2));
  ASSERT_TRUE(trace.file.notes.cut);
  EXPECT_EQ(kernels(one(trace)).integers("calls"), (Integers{1}));
}

}  // namespace
}  // namespace headrace::analysis::device
