#include "headrace/analysis/device/operators.h"

#include <gtest/gtest.h>

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::device {
namespace {

TEST(Diff, ComparesCallsAndTimesByName) {
  const trace::Trace control = TraceBuilder()
                                   .host("cpu_op", "aten::mm", 0, 10)
                                   .host("cpu_op", "aten::old", 20, 7)
                                   .kernel("gemm<float>", 0, 30, 50)
                                   .kernel("gemm<half>", 0, 90, 10)
                                   .build();
  const trace::Trace test = TraceBuilder()
                                .host("cpu_op", "aten::mm", 0, 10)
                                .host("cpu_op", "aten::new", 20, 1)
                                .kernel("gemm<float>", 0, 30, 20)
                                .kernel("gemm<float>", 0, 60, 5)
                                .event("Trace", "PyTorch Profiler (0)", "\"Spans\"", "\"x\"", 0, 1000)
                                .build();
  const Table table = diff(control, test);
  ASSERT_EQ(table.rows(), 5U);
  const auto text = [&](const char* column, std::size_t row) {
    return std::string(table.texts(column)[row]);
  };
  EXPECT_EQ(text("name", 0), "gemm<float>");
  EXPECT_EQ(table.integers("diff_calls"), (Integers{1, -1, -1, 1, 0}));
  EXPECT_DOUBLE_EQ(table.numbers("diff_s")[0], -25e-6);
  EXPECT_EQ(text("change", 0), "increased");
  EXPECT_EQ(text("calls_change", 0), "+");
  EXPECT_EQ(text("name", 1), "gemm<half>");
  EXPECT_EQ(text("change", 1), "deleted");
  EXPECT_EQ(text("name", 2), "aten::old");
  EXPECT_EQ(text("name", 3), "aten::new");
  EXPECT_EQ(text("change", 3), "added");
  EXPECT_EQ(text("change", 4), "unchanged");
  EXPECT_EQ(text("calls_change", 4), "=");

  DiffOptions options;
  options.side = Side::device;
  options.short_names = true;
  const Table device = diff(control, test, options);
  ASSERT_EQ(device.rows(), 1U);
  EXPECT_EQ(device.texts("name")[0], "gemm");
  EXPECT_EQ(device.texts("change")[0], "unchanged");
  EXPECT_DOUBLE_EQ(device.numbers("control_s")[0], 60e-6);
  options.side = Side::host;
  EXPECT_EQ(diff(control, test, options).rows(), 3U);
}

TEST(Diff, ComparesStepsOfOneTrace) {
  TraceBuilder builder;
  builder.step(1, 0, 100).host("cpu_op", "aten::mm", 10, 10);
  builder.step(2, 100, 100).host("cpu_op", "aten::mm", 110, 10).host("cpu_op", "aten::mm", 150, 30);
  const trace::Trace trace = builder.build();
  DiffOptions options;
  options.control.steps = {1};
  options.test.steps = {2};
  const Table table = diff(trace, trace, options);
  EXPECT_EQ(table.texts("name")[0], "ProfilerStep#1");
  EXPECT_EQ(table.texts("change")[2], "increased");
  EXPECT_DOUBLE_EQ(table.numbers("diff_s")[2], 30e-6);
}

TEST(Diff, OfNothingIsEmpty) {
  const trace::Trace nothing = TraceBuilder().build();
  const Table table = diff(nothing, nothing);
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_EQ(table.notes, (std::vector<std::string>{"neither trace has events to compare"}));
}

TEST(ShortName, LeavesTheNameOfTheFunction) {
  EXPECT_EQ(short_name("void at::native::gemm_kernel<float, 4>(float*, std::pair<int, int>)"),
            "at::native::gemm_kernel");
  EXPECT_EQ(
      short_name("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::F<2>>(int)"),
      "at::native::::multi_tensor_apply_kernel");
  EXPECT_EQ(short_name("void at::add<float>(int) [clone .kd]"), "at::add");
  EXPECT_EQ(short_name("void f<decltype(x->y)>(int)"), "f");
  EXPECT_EQ(short_name("ampere_sgemm_128x128_tn"), "ampere_sgemm_128x128_tn");
  EXPECT_EQ(short_name("Memcpy HtoD (Pinned -> Device)"), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(short_name("void cut_off<float, std::pair<int"), "cut_off");
  EXPECT_EQ(short_name("<lambda>"), "<lambda>");
}

}  // namespace
}  // namespace headrace::analysis::device
