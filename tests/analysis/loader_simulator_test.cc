// What a simulated DataLoader does, against what follows from its numbers, and when a prediction is refused.
#include <gtest/gtest.h>

#include <vector>

#include "headrace/analysis/what_if/loader_run.h"
#include "headrace/analysis/what_if/loader_simulator.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

using simulation::DataLoader;
using Kind = Change::Kind;

/// Sleeps of `batch_s` in `workers`, a step of 10 ms, and a hand-off that costs next to nothing.
SimulatedLoader plain(int workers, double batch_s) {
  SimulatedLoader model;
  model.workers = workers;
  model.cores = 64;
  model.lanes = {{{batch_s, 0}}};
  model.steps = {{0.010, 0}};
  model.slowest = "Images";
  model.handoff = "handoff";
  return model;
}

DataLoader sleeping(int workers) {
  return {
      .parts = {{.name = "Images", .sleep_s = 0.005}, {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
      .num_workers = workers,
      .batch_size = 8,
      .compute_s = 0.010,
      .cores = 8};
}

TEST(SimulatedLoader, WorkersShareTheWork) {
  EXPECT_NEAR(simulate(plain(1, 0.060), 100, 0).step_s, 0.060, 1e-4);
  EXPECT_NEAR(simulate(plain(2, 0.060), 100, 0).step_s, 0.030, 1e-4);
  EXPECT_NEAR(simulate(plain(12, 0.060), 100, 0).step_s, 0.010, 1e-4);
  EXPECT_LT(simulate(plain(12, 0.060), 100, 0).wait_share, 0.01);
  EXPECT_NEAR(simulate(plain(2, 0.060), 100, 0).worker_share, 1, 0.01);
}

TEST(SimulatedLoader, WithoutWorkersEverythingAddsUp) {
  SimulatedLoader model = plain(0, 0.060);
  model.draw.cpu_s = 0.005;
  EXPECT_NEAR(simulate(model, 100, 0).step_s, 0.075, 1e-4);
}

TEST(SimulatedLoader, ReceivingIsSerialWhateverTheWorkers) {
  SimulatedLoader model = plain(8, 0.001);
  model.receive = {0.001, 0.004};
  EXPECT_NEAR(simulate(model, 100, 0).step_s, 0.015, 1e-4);
  EXPECT_NEAR(simulate(model, 100, 0).serve_share, 1.0 / 3, 0.01);
  // A thread that pins does it beside the step.
  model.pins = true;
  EXPECT_NEAR(simulate(model, 100, 0).step_s, 0.010, 1e-4);
  model.pin.cpu_s = 0.015;
  EXPECT_NEAR(simulate(model, 100, 0).step_s, 0.020, 1e-4);
  EXPECT_NEAR(simulate(model, 100, 0).pin_share, 1, 0.01);
}

TEST(SimulatedLoader, CoresAreShared) {
  SimulatedLoader model = plain(4, 0);
  model.lanes = {{{0, 0.060}}};
  model.cores = 2;
  EXPECT_NEAR(simulate(model, 200, 0).step_s, 1.08 * 0.030, 1e-3);
  EXPECT_NEAR(simulate(model, 200, 0).cpu_share, 1, 0.01);
  model.cores = 4;
  EXPECT_NEAR(simulate(model, 200, 0).step_s, 1.08 * 0.015, 1e-3);
}

TEST(SimulatedLoader, OneSlowBatchHoldsUpTheOthersOnlyInOrder) {
  SimulatedLoader model = plain(4, 0.020);
  // 41 of them, so that the slow one meets every worker in turn
  model.lanes.assign(1, std::vector<Work>(41, Work{0.020, 0}));
  model.lanes[0][20].off_s = 0.400;
  const double in_order_s = simulate(model, 400, 0).step_s;
  model.ordered = false;
  const double any_order_s = simulate(model, 400, 0).step_s;
  EXPECT_NEAR(any_order_s, 0.010, 1e-3);
  EXPECT_GT(in_order_s, 1.3 * any_order_s);
  model.ordered = true;
  model.per_worker = 16;  // bridges 16 x 4 steps of 10 ms
  EXPECT_NEAR(simulate(model, 400, 0).step_s, 0.010, 1e-3);
}

TEST(SimulatedLoader, BatchesStayWithTheirWorkerWhileItsNumberDoes) {
  SimulatedLoader model = plain(2, 0);
  model.lanes = {{{0.010, 0}}, {{0.060, 0}}};  // the second worker is slow: every other batch waits for it
  EXPECT_NEAR(simulate(model, 200, 0).step_s, 0.030, 1e-3);
}

TEST(LoaderSimulator, KnowsWhatLimitsThen) {
  const profile::Profile profile = simulation::simulate(sleeping(1), 1);
  const LoaderSimulator simulator(profile);
  const Prediction two = simulator.predict({{Kind::kWorkers, 0, 2, 1}});
  ASSERT_TRUE(two.known);
  EXPECT_NEAR(two.step_s, 0.020, 0.002);
  EXPECT_EQ(two.limit, "Images");
  EXPECT_EQ(simulator.predict({{Kind::kWorkers, 0, 8, 1}}).limit, "sink");
  EXPECT_LT(two.low_s, two.step_s);
  EXPECT_GT(two.high_s, two.step_s);
}

TEST(LoaderSimulator, SameQuestionSameAnswer) {
  const profile::Profile profile = simulation::simulate(sleeping(2), 1);
  const LoaderSimulator first(profile);
  const LoaderSimulator second(profile);
  for (int to : {1, 3, 3}) {
    EXPECT_EQ(first.predict({{Kind::kWorkers, 0, to, 1}}).step_s,
              second.predict({{Kind::kWorkers, 0, to, 1}}).step_s);
  }
}

TEST(LoaderSimulator, AbstainsWhereItCannotKnow) {
  profile::Profile profile = simulation::simulate(sleeping(2), 1);
  const LoaderSimulator simulator(profile);
  EXPECT_FALSE(simulator.predict({{Kind::kCapacity, 0, 8, 1}}).known);  // no parameter of it
  EXPECT_FALSE(simulator.predict({{Kind::kWorkers, 2, 8, 1}}).known);   // the hand-off has no workers
  EXPECT_FALSE(simulator.predict({{Kind::kWorkers, -1, 8, 1}}).known);
  EXPECT_FALSE(simulator.predict({{Kind::kService, 99, 1, 0.5}}).known);
  const profile::Profile nothing;
  EXPECT_FALSE(LoaderSimulator(nothing).predict({}).known);
  profile.host.foreign_contention_share = 0.4;
  EXPECT_FALSE(LoaderSimulator(profile).predict({}).known);
  profile.host.foreign_contention_share = 0;
  profile.sink.step_s *= 3;  // nothing that was recorded explains such steps
  EXPECT_FALSE(LoaderSimulator(profile).predict({}).known);
}

TEST(LoaderSimulator, ParametersOfWorkersNeedWorkers) {
  const profile::Profile profile = simulation::simulate(sleeping(0), 1);
  const LoaderSimulator simulator(profile);
  EXPECT_FALSE(simulator.predict({{Kind::kWindow, 0, 8, 1}}).known);
  EXPECT_FALSE(simulator.predict({{Kind::kOrder, 0, 0, 1}}).known);
  EXPECT_TRUE(simulator.predict({{Kind::kWorkers, 0, 4, 1}, {Kind::kWindow, 0, 8, 1}}).known);
}

TEST(LoaderSimulator, AbsurdChangesAreBounded) {
  const profile::Profile profile = simulation::simulate(sleeping(2), 1);
  const LoaderSimulator simulator(profile);
  const Prediction most = simulator.predict({{Kind::kWorkers, 0, 1'000'000, 1}});
  ASSERT_TRUE(most.known);
  EXPECT_NEAR(most.step_s, 0.011, 0.003);
  EXPECT_TRUE(simulator.predict({{Kind::kWindow, 0, 1'000'000'000, 1}}).known);
  EXPECT_TRUE(simulator.predict({{Kind::kWorkers, 0, -5, 1}}).known);  // none
}

TEST(LoaderSimulator, HistogramAloneIsEnoughForAStep) {
  profile::Profile profile = simulation::simulate(sleeping(1), 1);
  for (profile::OperatorProfile& op : profile.operators) op.per_worker.clear();
  profile.sink.sequence.clear();
  const LoaderSimulator simulator(profile);
  const Prediction two = simulator.predict({{Kind::kWorkers, 0, 2, 1}});
  ASSERT_TRUE(two.known);
  EXPECT_NEAR(two.step_s, 0.020, 0.002);
}

TEST(LoaderSimulator, LargeBatchesKeepTheirSpread) {
  // 64 items a batch, recorded in part: the sum of so many varies by an eighth of what one item does.
  DataLoader loader = sleeping(2);
  loader.batch_size = 64;
  loader.parts.front().sleep_s = 4e-4;
  loader.parts.front().factor = simulation::exponential();
  const profile::Profile profile = simulation::simulate(loader, 3);
  const LoaderSimulator simulator(profile);
  const Prediction now = simulator.predict({});
  ASSERT_TRUE(now.known);
  EXPECT_NEAR(now.step_s / profile.sink.step_s, 1, 0.05);
}

}  // namespace
}  // namespace headrace::analysis
