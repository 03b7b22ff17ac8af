#include "headrace/analysis/device/annotations.h"

#include <gtest/gtest.h>

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::device {
namespace {

std::string cell(const Table& table, const char* column, std::size_t row) {
  return std::string(table.texts(column)[row]);
}

/// On the host forward [0, 50) with loss [30, 45) in it, and optimizer [60, 90); on the device the same
/// later.
trace::Trace nested_annotations() {
  TraceBuilder builder;
  builder.host("user_annotation", "forward", 0, 50)
      .host("cpu_op", "aten::mm", 5, 20)
      .call("cudaLaunchKernel", 1, 10, 5)
      .host("user_annotation", "loss", 30, 15)
      .call("cudaLaunchKernel", 2, 32, 5)
      .host("user_annotation", "optimizer", 60, 30)
      .call("cudaLaunchKernel", 3, 62, 5)
      .call("cudaLaunchKernel", 4, 95, 5);
  builder.kernel("gemm", 1, 100, 20)
      .kernel("nll", 2, 120, 10)
      .kernel("adam", 3, 130, 5)
      .kernel("gemm", 4, 135, 1);
  // A nanosecond wider on both sides, as Kineto writes them.
  builder.device("gpu_user_annotation", "forward", 0, 99.999, 30.002)
      .device("gpu_user_annotation", "loss", 0, 119.999, 10.002)
      .device("gpu_user_annotation", "optimizer", 0, 129.999, 5.002)
      .device("gpu_user_annotation", "elsewhere", 0, 90, 100, 9);
  return builder.build();
}

TEST(Annotations, CountRangesOfTheDevice) {
  const trace::Trace trace = nested_annotations();
  const Table table = annotations(one(trace)).ranges;
  ASSERT_EQ(table.rows(), 4U);
  EXPECT_EQ(cell(table, "name", 0), "elsewhere");
  EXPECT_EQ(cell(table, "name", 1), "forward");
  EXPECT_DOUBLE_EQ(table.numbers("total_s")[1], 30.002e-6);
  EXPECT_EQ(table.integers("calls"), (Integers{1, 1, 1, 1}));
}

TEST(Annotations, CountRangesOfTheHost) {
  const trace::Trace trace = nested_annotations();
  AnnotationsOptions options;
  options.on_device = false;
  options.most_names = 1;
  options.always_shown = {"los"};
  const Table table = annotations(one(trace), options).ranges;
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(cell(table, "name", 0), "forward");
  EXPECT_EQ(cell(table, "name", 1), "loss");
  EXPECT_EQ(cell(table, "name", 2), "others");
  EXPECT_DOUBLE_EQ(table.numbers("total_s")[2], 30e-6);
}

void expect_innermost(const Table& table) {
  ASSERT_EQ(table.rows(), 4U);
  EXPECT_EQ(cell(table, "annotation", 0), "");
  EXPECT_EQ(cell(table, "annotation", 1), "forward");
  EXPECT_EQ(cell(table, "name", 1), "gemm");
  EXPECT_EQ(cell(table, "annotation", 2), "loss");
  EXPECT_EQ(cell(table, "name", 2), "nll");
  EXPECT_EQ(cell(table, "annotation", 3), "optimizer");
  EXPECT_EQ(cell(table, "name", 3), "adam");
  EXPECT_DOUBLE_EQ(table.numbers("total_s")[1], 20e-6);
}

TEST(Annotations, WorkBelongsToTheInnermostRange) {
  const trace::Trace trace = nested_annotations();
  expect_innermost(annotations(one(trace)).kernels);
  AnnotationsOptions options;
  options.on_device = false;
  expect_innermost(annotations(one(trace), options).kernels);
}

TEST(Annotations, WhereThereAreNoneTheTableSaysSo) {
  const trace::Trace trace = TraceBuilder().kernel("gemm", 0, 10, 5).build();
  const Annotations result = annotations(one(trace));
  EXPECT_EQ(result.ranges.rows(), 0U);
  EXPECT_EQ(result.ranges.notes, (std::vector<std::string>{"rank 0 has no annotations on the device"}));
  ASSERT_EQ(result.kernels.rows(), 1U);
  EXPECT_EQ(cell(result.kernels, "annotation", 0), "");
}

}  // namespace
}  // namespace headrace::analysis::device
