#include "headrace/analysis/device/collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::device {
namespace {

std::string arguments(const std::string& name, const std::string& group, std::int64_t elements,
                      const std::string& ranks, std::int64_t size = 4) {
  return R"("Collective name": ")" + name + R"(", "Process Group Name": ")" + group +
         R"(", "dtype": "BFloat16", )" + R"("In msg nelems": )" + std::to_string(elements) +
         R"(, "Out msg nelems": 8, "Group size": )" + std::to_string(size) + R"(, "Process Group Ranks": ")" +
         ranks + '"';
}

TEST(Collectives, AreCountedByGroupAndSize) {
  TraceBuilder builder;
  builder.rank(1).step(0, 0, 1000);
  for (int i = 0; i < 10; ++i)
    builder.device("kernel", "ncclDevKernel_AllReduce", 0, 10 + 50 * i, 20 + i, 7, 0,
                   arguments("allreduce", "2", 1'000'000, "[0, 1, 2, 3]"));
  builder.device("kernel", "ncclDevKernel_AllGather", 0, 600, 40, 7, 0,
                 arguments("_allgather_base", "2", 4'000'000, "[0, 1, 2, 3]"));
  builder.device("kernel", "ncclDevKernel_AllReduce", 0, 700, 40);
  const trace::Trace trace = builder.build();
  const Table table = collectives(one(trace));
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.texts("collective")[0], "all_reduce");
  EXPECT_EQ(table.texts("ranks")[0], "0, 1, 2, 3");
  EXPECT_EQ(table.integers("calls")[0], 10);
  EXPECT_EQ(table.numbers("bytes")[0], 2e6);
  EXPECT_NEAR(table.numbers("total_s")[0], 245e-6, 1e-12);
  EXPECT_NEAR(table.numbers("transfer_s")[0], 21e-6, 1e-12);
  EXPECT_NEAR(table.numbers("bandwidth_gbps")[0], 1.5 * 2e6 / 21e-6 / 1e9, 1e-9);
  EXPECT_EQ(table.texts("collective")[1], "all_gather");
  EXPECT_NEAR(table.numbers("bandwidth_gbps")[1], 0.75 * 8e6 / 40e-6 / 1e9, 1e-9);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_EQ(table.notes[0], "rank 1: 1 collectives are recorded without group or size");
}

TEST(Collectives, LongListsOfRanksAreThoseOfTheFile) {
  std::string text = TraceBuilder()
                         .rank(0)
                         .device("kernel", "ncclDevKernel_AllReduce", 0, 10, 20, 7, 0,
                                 arguments("allreduce", "9", 100, "[0, 1, ..., 3]", 3))
                         .text();
  const std::string groups = R"("pg_config": [{"pg_name": "9", "ranks": [0, 2, 3]}], "world_size": 2)";
  text.replace(text.find("\"world_size\": 2"), std::string("\"world_size\": 2").size(), groups);
  const Table table = collectives(one(TraceBuilder::trace_of(text)));
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.texts("ranks")[0], "0, 2, 3");
  EXPECT_EQ(table.integers("members")[0], 3);
}

TEST(Collectives, WithoutAnyIsSaid) {
  const Table table = collectives(one(TraceBuilder().rank(0).kernel("gemm", 0, 0, 10).build()));
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_EQ(table.notes[0], "no collective is recorded");
}

TEST(Collectives, BusFactors) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("reduce_scatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("broadcast", 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 1), 1);
}

}  // namespace
}  // namespace headrace::analysis::device
