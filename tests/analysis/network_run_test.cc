// What a simulated network does, against what follows from its numbers.
#include <gtest/gtest.h>

#include <vector>

#include "headrace/analysis/simulate/engine.h"
#include "headrace/analysis/simulate/network_run.h"

namespace headrace::analysis {
namespace {

using Stage = Network::Stage;

Stage stage(double seconds, int workers, std::vector<Network::Edge> inputs,
            std::vector<Network::Edge> outputs) {
  Stage made;
  made.workers = workers;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.lanes = {{Work{seconds, 0}}};
  made.name = "decode";
  return made;
}

/// One stage that sleeps, a queue of `capacity`, a step of 10 ms.
Network one_stage(double seconds, int workers, int capacity = 2) {
  Network network;
  network.cores = 64;
  network.queues = {{capacity}};
  network.stages = {stage(seconds, workers, {}, {{0, 1}})};
  network.inputs = {{0, 1}};
  network.steps = {{0.010, 0}};
  return network;
}

TEST(NetworkRun, WorkersShareTheWork) {
  EXPECT_NEAR(simulate(one_stage(0.060, 1), 100, 0).step_s, 0.060, 1e-4);
  EXPECT_NEAR(simulate(one_stage(0.060, 3), 99, 0).step_s, 0.020, 1e-4);
  EXPECT_NEAR(simulate(one_stage(0.060, 3), 99, 0).busy[0], 1, 0.01);
  EXPECT_NEAR(simulate(one_stage(0.060, 12), 100, 0).step_s, 0.010, 1e-4);
  EXPECT_LT(simulate(one_stage(0.060, 12), 100, 0).wait_share, 0.01);
}

TEST(NetworkRun, TheSlowestStageSetsThePace) {
  Network network = one_stage(0.005, 1);
  network.queues.push_back({2});
  network.stages.push_back(stage(0.030, 1, {{0, 1}}, {{1, 1}}));
  network.inputs = {{1, 1}};
  const SimulatedRun run = simulate(network, 100, 0);
  EXPECT_NEAR(run.step_s, 0.030, 1e-4);
  EXPECT_NEAR(run.busy[0], 5.0 / 30, 0.01);
  EXPECT_NEAR(run.busy[1], 1, 0.01);
  EXPECT_NEAR(run.wait_share, 2.0 / 3, 0.01);
}

TEST(NetworkRun, ItemsBecomeBatches) {
  Network network = one_stage(0.002, 1, 64);
  network.stages[0].cycles_per_batch = 32;
  network.queues.push_back({2});
  network.stages.push_back(stage(0.001, 1, {{0, 32}}, {{1, 1}}));
  network.inputs = {{1, 1}};
  EXPECT_NEAR(simulate(network, 50, 0).step_s, 0.064, 1e-4);
}

TEST(NetworkRun, AFilterPassesAFraction) {
  Network network = one_stage(0.010, 1);
  network.stages[0].outputs = {{0, 0.25}};
  EXPECT_NEAR(simulate(network, 100, 0).step_s, 0.040, 1e-3);
}

TEST(NetworkRun, LoadingInTheLoopAddsUp) {
  Network network;
  network.in_sink = {{0.030, 0}};
  network.steps = {{0.010, 0}};
  const SimulatedRun run = simulate(network, 50, 0);
  EXPECT_NEAR(run.step_s, 0.040, 1e-4);
  EXPECT_NEAR(run.load_share, 0.75, 0.01);
}

TEST(NetworkRun, CoresAreShared) {
  Network network = one_stage(0, 4);
  network.stages[0].lanes = {{Work{0, 0.060}}};
  network.cores = 2;
  const SimulatedRun run = simulate(network, 200, 0);
  EXPECT_NEAR(run.step_s, 1.08 * 0.030, 1e-3);
  EXPECT_NEAR(run.cpu_share, 1, 0.01);
}

TEST(NetworkRun, OneInterpreterLockLetsOneThreadRun) {
  Network network = one_stage(0, 3);
  network.stages[0].lanes = {{Work{0, 0, 0.020}}};
  const SimulatedRun run = simulate(network, 200, 0);
  EXPECT_NEAR(run.step_s, 0.020, 1e-3);
  EXPECT_NEAR(run.lock_share, 1, 0.01);
  // The step wants the lock as well: both take turns.
  network.steps = {{0, 0, 0.010}};
  EXPECT_NEAR(simulate(network, 200, 0).step_s, 0.030, 2e-3);
}

TEST(NetworkRun, MomentsUnderTheLockWaitForThoseWhoComputeUnderIt) {
  // Two stages of one thread each: one computes in Python, the other in C code that takes the lock for each call.
  Network network = one_stage(0, 1);
  network.stages[0].lanes = {{Work{0, 0, 0.020}}};
  network.queues.push_back({2});
  network.stages.push_back(stage(0, 1, {{0, 1}}, {{1, 1}}));
  network.stages[1].lanes = {{Work{0, 0.008, 0.0004}}};
  network.inputs = {{1, 1}};
  network.stages[1].lock.turns = 1;
  const SimulatedRun rarely = simulate(network, 200, 0);
  EXPECT_NEAR(rarely.step_s, 0.0204, 5e-4);  // it fits beside
  EXPECT_NEAR(rarely.lock_waited_s[1], kSwitchInterval_s, 1e-3);
  network.stages[1].lock.turns = 8;
  const SimulatedRun often = simulate(network, 200, 0);
  EXPECT_GT(often.step_s, 1.15 * rarely.step_s);
  EXPECT_GT(often.lock_waited_s[1], 3 * kSwitchInterval_s);
  EXPECT_EQ(often.sink_lock_waited_s, 0);
}

TEST(NetworkRun, ASlowItemHoldsUpTheOthersOnlyInOrder) {
  Network network = one_stage(0, 4, 4);
  network.stages[0].lanes = {std::vector<Work>(41, Work{0.020, 0})};
  network.stages[0].lanes[0][20].off_s = 0.400;
  const double as_ready_s = simulate(network, 400, 0).step_s;
  network.stages[0].ordered = true;
  const double in_order_s = simulate(network, 400, 0).step_s;
  EXPECT_GT(in_order_s, 1.1 * as_ready_s);
  network.queues[0].capacity = 64;
  EXPECT_LT(simulate(network, 400, 0).step_s, 1.05 * as_ready_s);
}

TEST(NetworkRun, LongerQueuesBridgeVariation) {
  Network network = one_stage(0, 1, 1);
  network.stages[0].lanes = {{}};
  for (int i = 0; i < 40; ++i) network.stages[0].lanes[0].push_back({i % 8 == 0 ? 0.044 : 0.004, 0});
  const double short_s = simulate(network, 200, 0).step_s;
  network.queues[0].capacity = 32;
  const double long_s = simulate(network, 200, 0).step_s;
  EXPECT_NEAR(long_s, 0.010, 5e-4);
  EXPECT_GT(short_s, 1.2 * long_s);
}

TEST(NetworkRun, WhatCannotGoOnIsSaid) {
  Network network = one_stage(0.010, 1);
  network.inputs.push_back({0, 0});
  network.queues.push_back({1});
  network.inputs.push_back({1, 1});  // nobody puts there
  EXPECT_EQ(simulate(network, 20, 0).step_s, 0);
}

/// A window of two batches for each of `workers` that sleep for `batch_s`, a step of 10 ms.
Network window(int workers, double batch_s) {
  Network network = one_stage(batch_s, workers, 1000);
  network.stages[0].window = 2;
  network.ordered = true;
  return network;
}

TEST(NetworkRun, AWindowIsDealtOutToWorkers) {
  EXPECT_NEAR(simulate(window(1, 0.060), 100, 0).step_s, 0.060, 1e-4);
  EXPECT_NEAR(simulate(window(2, 0.060), 100, 0).step_s, 0.030, 1e-4);
  EXPECT_NEAR(simulate(window(12, 0.060), 100, 0).step_s, 0.010, 1e-4);
  EXPECT_LT(simulate(window(12, 0.060), 100, 0).wait_share, 0.01);
  EXPECT_NEAR(simulate(window(2, 0.060), 100, 0).busy[0], 1, 0.01);
}

TEST(NetworkRun, ReceivingIsSerialWhateverTheWorkers) {
  Network network = window(8, 0.001);
  network.receive = {0.001, 0.004};
  EXPECT_NEAR(simulate(network, 100, 0).step_s, 0.015, 1e-4);
  EXPECT_NEAR(simulate(network, 100, 0).serve_share, 1.0 / 3, 0.01);
  // A thread that pins does it beside the step.
  network.queues.push_back({1000});
  network.stages.push_back(stage(0, 1, {{0, 1}}, {{1, 1}}));
  network.stages[1].receives = true;
  network.inputs = {{1, 1}};
  EXPECT_NEAR(simulate(network, 100, 0).step_s, 0.010, 1e-4);
  network.stages[1].lanes = {{Work{0, 0.015}}};
  EXPECT_NEAR(simulate(network, 100, 0).step_s, 0.020, 1e-4);
  EXPECT_NEAR(simulate(network, 100, 0).busy[1], 1, 0.01);
}

TEST(NetworkRun, AWorkerGoesOnWhileItsItemIsHandedOn) {
  Network network = window(1, 0.020);
  network.stages[0].hands_on_cpu_s = 0.015;
  EXPECT_NEAR(simulate(network, 100, 0).step_s, 0.020, 1e-3);
  network.stages[0].hands_on_cpu_s = 0.030;
  EXPECT_NEAR(simulate(network, 100, 0).step_s, 0.030, 1e-3);
}

TEST(NetworkRun, OneSlowBatchOfAWindowHoldsUpTheOthersOnlyInOrder) {
  Network network = window(4, 0.020);
  // 41 of them, so that the slow one meets every worker in turn
  network.stages[0].lanes.assign(1, WorkSequence(41, Work{0.020, 0}));
  network.stages[0].lanes[0][20].off_s = 0.400;
  const double in_order_s = simulate(network, 400, 0).step_s;
  network.ordered = false;
  const double any_order_s = simulate(network, 400, 0).step_s;
  EXPECT_NEAR(any_order_s, 0.010, 1e-3);
  EXPECT_GT(in_order_s, 1.3 * any_order_s);
  network.ordered = true;
  network.stages[0].window = 16;  // bridges 16 x 4 steps of 10 ms
  EXPECT_NEAR(simulate(network, 400, 0).step_s, 0.010, 1e-3);
}

TEST(NetworkRun, BatchesOfAWindowStayWithTheirWorkerWhileItsNumberDoes) {
  Network network = window(2, 0);
  network.stages[0].lanes = {{{0.010, 0}},
                             {{0.060, 0}}};  // the second is slow: every other batch waits for it
  EXPECT_NEAR(simulate(network, 200, 0).step_s, 0.030, 1e-3);
}

}  // namespace
}  // namespace headrace::analysis
