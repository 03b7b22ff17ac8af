#include "headrace/analysis/device/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::device {
namespace {

/// Three steps of 1 ms; the all-reduce of each starts at `start_us` into it and ends at 900 us.
trace::Trace rank_with(int rank, std::array<double, 3> start_us, int steps = 3) {
  TraceBuilder builder;
  builder.rank(rank);
  for (int step = 0; step < steps; ++step) {
    const double at = 1000.0 * step;
    builder.step(step, at, 1000).call("cudaLaunchKernel", step + 1, at + 10, 5);
    builder.kernel("ncclDevKernel_AllReduce", step + 1, at + start_us[static_cast<std::size_t>(step)],
                   900 - start_us[static_cast<std::size_t>(step)]);
  }
  return builder.build();
}

TEST(Stragglers, StartTheirCollectivesLast) {
  std::vector<trace::Trace> traces;
  traces.push_back(rank_with(0, {100, 110, 120}));
  traces.push_back(rank_with(1, {100, 105, 400}));
  traces.push_back(rank_with(2, {500, 600, 300}));
  StragglersOptions options;
  options.candidates = 1;
  const Table table = stragglers(traces, options);
  EXPECT_EQ(table.integers("rank"), (Integers{2, 1, 0}));
  EXPECT_EQ(table.integers("candidate"), (Integers{1, 0, 0}));
  EXPECT_EQ(table.integers("late_steps"), (Integers{2, 1, 0}));
  EXPECT_EQ(table.integers("steps"), (Integers{3, 3, 3}));
  EXPECT_NEAR(table.numbers("mean_late_s")[0], (400 + 495 + 180) / 3.0 * 1e-6, 1e-12);
  EXPECT_NEAR(table.numbers("mean_wait_s")[0], 100 / 3.0 * 1e-6, 1e-12);
  EXPECT_EQ(table.notes, (std::vector<std::string>{"judged by ncclDevKernel_AllReduce on stream 7"}));
  options.steps = {2};
  EXPECT_EQ(stragglers(traces, options).integers("rank")[0], 1);
}

/// Rows in order of rank: 1 if the rank is a straggler.
Integers candidates_of(const Table& table) {
  Integers result(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row)
    result[static_cast<std::size_t>(table.integers("rank")[row])] = table.integers("candidate")[row];
  return result;
}

std::vector<trace::Trace> ranks_with(const std::vector<std::array<double, 3>>& starts_us) {
  std::vector<trace::Trace> traces;
  for (std::size_t rank = 0; rank < starts_us.size(); ++rank)
    traces.push_back(rank_with(static_cast<int>(rank), starts_us[rank]));
  return traces;
}

TEST(Stragglers, NobodyIsOneWhereAllAreEquallyLate) {
  const std::vector<trace::Trace> same = ranks_with({{100, 100, 100}, {100, 100, 100}, {100, 100, 100}});
  const Table table = stragglers(same);
  EXPECT_EQ(table.integers("candidate"), (Integers{0, 0, 0}));
  ASSERT_EQ(table.notes.size(), 2U);
  EXPECT_EQ(table.notes[1], "no straggler: no rank is slower than the normal spread between ranks");
  // Each is the last in one step.
  EXPECT_EQ(candidates_of(stragglers(ranks_with({{130, 100, 90}, {90, 130, 100}, {100, 90, 130}}))),
            (Integers{0, 0, 0}));
  // Evenly spread: the last is no further behind than the others are apart.
  EXPECT_EQ(candidates_of(
                stragglers(ranks_with({{100, 100, 100}, {200, 200, 200}, {300, 300, 300}, {400, 400, 400}}))),
            (Integers{0, 0, 0, 0}));
}

TEST(Stragglers, AreAsManyAsStandOut) {
  const std::array<double, 3> early{100, 120, 110};
  const std::array<double, 3> early_too{120, 100, 105};
  const std::array<double, 3> late{500, 520, 510};
  const std::array<double, 3> late_too{480, 530, 505};
  EXPECT_EQ(candidates_of(stragglers(ranks_with({early, late, early_too, early, late_too}))),
            (Integers{0, 1, 0, 0, 1}));
  EXPECT_EQ(candidates_of(stragglers(ranks_with({early, late, early_too, early, early}))),
            (Integers{0, 1, 0, 0, 0}));
  // At most half of the ranks: where three of four are late, the one that is early is the exception.
  StragglersOptions options;
  options.candidates = 3;
  EXPECT_EQ(candidates_of(stragglers(ranks_with({early, late, late_too, late}), options)),
            (Integers{0, 0, 0, 0}));
}

TEST(Stragglers, OfTwoRanksAreLateByMoreThanTheyVary) {
  EXPECT_EQ(candidates_of(stragglers(ranks_with({{100, 100, 100}, {150, 160, 155}}))), (Integers{0, 1}));
  EXPECT_EQ(candidates_of(stragglers(ranks_with({{100, 100, 100}, {400, 90, 95}}))), (Integers{0, 0}));
  // One step of two ranks has nothing to compare with.
  StragglersOptions options;
  options.steps = {1};
  const Table table = stragglers(ranks_with({{100, 100, 100}, {400, 400, 400}}), options);
  EXPECT_EQ(candidates_of(table), (Integers{0, 0}));
  EXPECT_EQ(table.notes[1], "two ranks and one step do not tell a straggler from chance");
}

TEST(Stragglers, CollectivesWithoutALaunchAreOfTheStepInWhichTheyBegan) {
  std::vector<trace::Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder builder;
    builder.rank(rank);
    for (int step = 0; step < 3; ++step) {
      builder.step(step, 1000.0 * step, 1000);
      builder.kernel("ncclDevKernel_AllReduce", 0, 1000.0 * step + 100 + 50 * rank, 300 - 50 * rank);
    }
    traces.push_back(builder.build());
  }
  const Table table = stragglers(traces);
  EXPECT_EQ(table.integers("rank"), (Integers{1, 0}));
  EXPECT_EQ(table.integers("candidate"), (Integers{1, 0}));
  EXPECT_EQ(table.integers("steps"), (Integers{3, 3}));
}

TEST(Stragglers, NeedRanksStepsAndCollectives) {
  std::vector<trace::Trace> traces;
  traces.push_back(rank_with(0, {100, 110, 120}));
  EXPECT_EQ(stragglers(traces).notes[0], "stragglers need the traces of two ranks or more");
  traces.push_back(TraceBuilder().rank(1).kernel("gemm", 0, 0, 10).build());
  EXPECT_EQ(stragglers(traces).notes[0],
            "the ranks have no step in common: stragglers are found step by step");
  traces.pop_back();
  traces.push_back(TraceBuilder().rank(1).step(0, 0, 1000).build());
  const Table table = stragglers(traces);
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_EQ(table.notes[0], "no collective that takes 1 % of a step runs on every rank");
  EXPECT_EQ(stragglers({}).rows(), 0U);
}

}  // namespace
}  // namespace headrace::analysis::device
