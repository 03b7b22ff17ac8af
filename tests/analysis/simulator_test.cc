// What is predicted of a loader with a window of batches, and when a prediction is refused.
#include <gtest/gtest.h>

#include <vector>

#include "headrace/analysis/simulate/simulator.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

using simulation::DataLoader;
using Kind = Change::Kind;

DataLoader sleeping(int workers) {
  return {
      .parts = {{.name = "Images", .sleep_s = 0.005}, {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
      .num_workers = workers,
      .batch_size = 8,
      .compute_s = 0.010,
      .cores = 8};
}

TEST(Simulator, KnowsWhatLimitsThen) {
  const profile::Profile profile = simulation::simulate(sleeping(1), 1);
  const Simulator simulator(profile);
  const Prediction two = simulator.predict({{Kind::kWorkers, 0, 2, 1}});
  ASSERT_TRUE(two.known);
  EXPECT_NEAR(two.step_s, 0.020, 0.002);
  EXPECT_EQ(two.limit, "Images");
  EXPECT_EQ(simulator.predict({{Kind::kWorkers, 0, 8, 1}}).limit, "sink");
  EXPECT_LT(two.low_s, two.step_s);
  EXPECT_GT(two.high_s, two.step_s);
}

TEST(Simulator, SameQuestionSameAnswer) {
  const profile::Profile profile = simulation::simulate(sleeping(2), 1);
  const Simulator first(profile);
  const Simulator second(profile);
  for (int to : {1, 3, 3}) {
    EXPECT_EQ(first.predict({{Kind::kWorkers, 0, to, 1}}).step_s,
              second.predict({{Kind::kWorkers, 0, to, 1}}).step_s);
  }
}

TEST(Simulator, AbstainsWhereItCannotKnow) {
  profile::Profile profile = simulation::simulate(sleeping(2), 1);
  const Simulator simulator(profile);
  EXPECT_FALSE(simulator.predict({{Kind::kCapacity, 0, 8, 1}}).known);  // no parameter of it
  EXPECT_FALSE(simulator.predict({{Kind::kWorkers, 2, 8, 1}}).known);   // the hand-off has no workers
  EXPECT_FALSE(simulator.predict({{Kind::kWorkers, -1, 8, 1}}).known);
  EXPECT_FALSE(simulator.predict({{Kind::kService, 99, 1, 0.5}}).known);
  const profile::Profile nothing;
  EXPECT_FALSE(Simulator(nothing).predict({}).known);
  profile.host.foreign_contention_share = 0.4;
  EXPECT_TRUE(Simulator(profile).predict({}).known);  // with the cores that others leave
  profile.host.foreign_contention_share = 0;
  profile.sink.step_s *= 3;  // nothing that was recorded explains such steps
  EXPECT_FALSE(Simulator(profile).predict({}).known);
}

TEST(Simulator, ParametersOfWorkersNeedWorkers) {
  const profile::Profile profile = simulation::simulate(sleeping(0), 1);
  const Simulator simulator(profile);
  EXPECT_FALSE(simulator.predict({{Kind::kWindow, 0, 8, 1}}).known);
  EXPECT_FALSE(simulator.predict({{Kind::kOrder, 0, 0, 1}}).known);
  EXPECT_TRUE(simulator.predict({{Kind::kWorkers, 0, 4, 1}, {Kind::kWindow, 0, 8, 1}}).known);
}

TEST(Simulator, AbsurdChangesAreBounded) {
  const profile::Profile profile = simulation::simulate(sleeping(2), 1);
  const Simulator simulator(profile);
  const Prediction most = simulator.predict({{Kind::kWorkers, 0, 1'000'000, 1}});
  ASSERT_TRUE(most.known);
  EXPECT_NEAR(most.step_s, 0.011, 0.003);
  EXPECT_TRUE(simulator.predict({{Kind::kWindow, 0, 1'000'000'000, 1}}).known);
  EXPECT_TRUE(simulator.predict({{Kind::kWorkers, 0, -5, 1}}).known);  // none
}

TEST(Simulator, HistogramAloneIsEnoughForAStep) {
  profile::Profile profile = simulation::simulate(sleeping(1), 1);
  for (profile::OperatorProfile& op : profile.operators) op.per_worker.clear();
  profile.sink.sequence.clear();
  const Simulator simulator(profile);
  const Prediction two = simulator.predict({{Kind::kWorkers, 0, 2, 1}});
  ASSERT_TRUE(two.known);
  EXPECT_NEAR(two.step_s, 0.020, 0.002);
}

TEST(Simulator, LargeBatchesKeepTheirSpread) {
  // 64 items a batch, recorded in part: the sum of so many varies by an eighth of what one item does.
  DataLoader loader = sleeping(2);
  loader.batch_size = 64;
  loader.parts.front().sleep_s = 4e-4;
  loader.parts.front().factor = simulation::exponential();
  const profile::Profile profile = simulation::simulate(loader, 3);
  const Simulator simulator(profile);
  const Prediction now = simulator.predict({});
  ASSERT_TRUE(now.known);
  EXPECT_NEAR(now.step_s / profile.sink.step_s, 1, 0.05);
}

}  // namespace
}  // namespace headrace::analysis
