#include "headrace/analysis/device/operators.h"

#include <gtest/gtest.h>

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::device {
namespace {

/// An aten::linear of 40 us that launches `names` one after the other; the last two inside of an aten::addmm.
void linear(TraceBuilder& builder, double start_us, int correlation, const std::vector<const char*>& names) {
  builder.host("cpu_op", "aten::linear", start_us, 40);
  builder.host("cpu_op", "aten::addmm", start_us + 9.5, 25);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double at = start_us + 5 * static_cast<double>(i + 1);
    builder.call("cudaLaunchKernel", correlation + static_cast<int>(i), at, 2);
    builder.kernel(names[i], correlation + static_cast<int>(i), at + 100, 3);
  }
}

trace::Trace four_linears() {
  TraceBuilder builder;
  linear(builder, 0, 1, {"a", "b", "c"});
  linear(builder, 50, 11, {"a", "b", "d"});
  linear(builder, 100, 21, {"a", "b", "c"});
  linear(builder, 150, 31, {"a", "b"});
  return builder.build();
}

TEST(Sequences, CountCallsThatStartTheSameWork) {
  const trace::Trace trace = four_linears();
  SequencesOptions options;
  options.operator_name = "aten::";
  const Table table = sequences(one(trace), options);
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.texts("pattern")[0], "aten::linear|a|b|c");
  EXPECT_EQ(table.texts("pattern")[1], "aten::linear|a|b|d");
  EXPECT_EQ(table.integers("count"), (Integers{2, 1}));
  EXPECT_EQ(table.integers("works"), (Integers{3, 3}));
  EXPECT_DOUBLE_EQ(table.numbers("kernel_s")[0], 18e-6);
  EXPECT_DOUBLE_EQ(table.numbers("host_s")[0], 80e-6);
  options.most = 1;
  EXPECT_EQ(sequences(one(trace), options).rows(), 1U);
}

TEST(Sequences, SaySoWhereAnOperatorStartsTooLittle) {
  const trace::Trace trace = four_linears();
  SequencesOptions options;
  options.operator_name = "aten::conv2d";
  const Table table = sequences(one(trace), options);
  EXPECT_EQ(table.rows(), 0U);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_EQ(table.notes[0],
            "rank 0 has no call of 'aten::conv2d' that started 3 pieces of device work or more");
}

TEST(OperatorSequences, TieWorkToTheInnermostOperator) {
  const trace::Trace trace = four_linears();
  const Table table = operator_sequences(one(trace));
  ASSERT_EQ(table.rows(), 4U);
  EXPECT_EQ(table.texts("operator")[0], "aten::linear");
  EXPECT_EQ(table.texts("sequence")[0], "a");
  EXPECT_EQ(table.integers("count"), (Integers{4, 2, 1, 1}));
  EXPECT_NEAR(table.numbers("mean_operator_delay_s")[0], 5e-6, 1e-15);
  EXPECT_NEAR(table.numbers("mean_launch_delay_s")[0], 100e-6, 1e-15);
  EXPECT_EQ(table.texts("operator")[1], "aten::addmm");
  EXPECT_EQ(table.texts("sequence")[1], "b -> c");
  EXPECT_NEAR(table.numbers("mean_operator_delay_s")[1], 0.5e-6, 1e-15);
}

}  // namespace
}  // namespace headrace::analysis::device
