// What a simulated pipeline of queues does, against what follows from its numbers.
#include <gtest/gtest.h>

#include <vector>

#include "headrace/analysis/what_if/pipeline_run.h"

namespace headrace::analysis {
namespace {

using Stage = PipelineModel::Stage;

Stage stage(double seconds, int workers, std::vector<PipelineModel::Edge> inputs,
            std::vector<PipelineModel::Edge> outputs) {
  Stage made;
  made.workers = workers;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.lanes = {{Work{seconds, 0}}};
  made.name = "decode";
  return made;
}

/// One stage that sleeps, a queue of `capacity`, a step of 10 ms.
PipelineModel one_stage(double seconds, int workers, int capacity = 2) {
  PipelineModel model;
  model.cores = 64;
  model.queues = {{capacity}};
  model.stages = {stage(seconds, workers, {}, {{0, 1}})};
  model.inputs = {{0, 1}};
  model.steps = {{0.010, 0}};
  return model;
}

TEST(SimulatedPipeline, WorkersShareTheWork) {
  EXPECT_NEAR(simulate(one_stage(0.060, 1), 100, 0).step_s, 0.060, 1e-4);
  EXPECT_NEAR(simulate(one_stage(0.060, 3), 99, 0).step_s, 0.020, 1e-4);
  EXPECT_NEAR(simulate(one_stage(0.060, 3), 99, 0).busy[0], 1, 0.01);
  EXPECT_NEAR(simulate(one_stage(0.060, 12), 100, 0).step_s, 0.010, 1e-4);
  EXPECT_LT(simulate(one_stage(0.060, 12), 100, 0).wait_share, 0.01);
}

TEST(SimulatedPipeline, TheSlowestStageSetsThePace) {
  PipelineModel model = one_stage(0.005, 1);
  model.queues.push_back({2});
  model.stages.push_back(stage(0.030, 1, {{0, 1}}, {{1, 1}}));
  model.inputs = {{1, 1}};
  const SimulatedPipeline run = simulate(model, 100, 0);
  EXPECT_NEAR(run.step_s, 0.030, 1e-4);
  EXPECT_NEAR(run.busy[0], 5.0 / 30, 0.01);
  EXPECT_NEAR(run.busy[1], 1, 0.01);
  EXPECT_NEAR(run.wait_share, 2.0 / 3, 0.01);
}

TEST(SimulatedPipeline, ItemsBecomeBatches) {
  PipelineModel model = one_stage(0.002, 1, 64);
  model.stages[0].cycles_per_batch = 32;
  model.queues.push_back({2});
  model.stages.push_back(stage(0.001, 1, {{0, 32}}, {{1, 1}}));
  model.inputs = {{1, 1}};
  EXPECT_NEAR(simulate(model, 50, 0).step_s, 0.064, 1e-4);
}

TEST(SimulatedPipeline, AFilterPassesAFraction) {
  PipelineModel model = one_stage(0.010, 1);
  model.stages[0].outputs = {{0, 0.25}};
  EXPECT_NEAR(simulate(model, 100, 0).step_s, 0.040, 1e-3);
}

TEST(SimulatedPipeline, LoadingInTheLoopAddsUp) {
  PipelineModel model;
  model.in_sink = {{0.030, 0}};
  model.steps = {{0.010, 0}};
  const SimulatedPipeline run = simulate(model, 50, 0);
  EXPECT_NEAR(run.step_s, 0.040, 1e-4);
  EXPECT_NEAR(run.serve_share, 0.75, 0.01);
}

TEST(SimulatedPipeline, CoresAreShared) {
  PipelineModel model = one_stage(0, 4);
  model.stages[0].lanes = {{Work{0, 0.060}}};
  model.cores = 2;
  const SimulatedPipeline run = simulate(model, 200, 0);
  EXPECT_NEAR(run.step_s, 1.08 * 0.030, 1e-3);
  EXPECT_NEAR(run.cpu_share, 1, 0.01);
}

TEST(SimulatedPipeline, OneInterpreterLockLetsOneThreadRun) {
  PipelineModel model = one_stage(0, 3);
  model.stages[0].lanes = {{Work{0, 0, 0.020}}};
  const SimulatedPipeline run = simulate(model, 200, 0);
  EXPECT_NEAR(run.step_s, 0.020, 1e-3);
  EXPECT_NEAR(run.lock_share, 1, 0.01);
  // The step wants the lock as well: both take turns.
  model.steps = {{0, 0, 0.010}};
  EXPECT_NEAR(simulate(model, 200, 0).step_s, 0.030, 2e-3);
}

TEST(SimulatedPipeline, MomentsUnderTheLockWaitForThoseWhoComputeUnderIt) {
  // Two stages of one thread each: one computes in Python, the other in C code that takes the lock for each call.
  PipelineModel model = one_stage(0, 1);
  model.stages[0].lanes = {{Work{0, 0, 0.020}}};
  model.queues.push_back({2});
  model.stages.push_back(stage(0, 1, {{0, 1}}, {{1, 1}}));
  model.stages[1].lanes = {{Work{0, 0.008, 0.0004}}};
  model.inputs = {{1, 1}};
  model.stages[1].lock.turns = 1;
  const SimulatedPipeline rarely = simulate(model, 200, 0);
  EXPECT_NEAR(rarely.step_s, 0.0204, 5e-4);  // it fits beside
  EXPECT_NEAR(rarely.lock_waited_s[1], kSwitchInterval_s, 1e-3);
  model.stages[1].lock.turns = 8;
  const SimulatedPipeline often = simulate(model, 200, 0);
  EXPECT_GT(often.step_s, 1.15 * rarely.step_s);
  EXPECT_GT(often.lock_waited_s[1], 3 * kSwitchInterval_s);
  EXPECT_EQ(often.sink_lock_waited_s, 0);
}

TEST(SimulatedPipeline, ASlowItemHoldsUpTheOthersOnlyInOrder) {
  PipelineModel model = one_stage(0, 4, 4);
  model.stages[0].lanes = {std::vector<Work>(41, Work{0.020, 0})};
  model.stages[0].lanes[0][20].off_s = 0.400;
  const double as_ready_s = simulate(model, 400, 0).step_s;
  model.stages[0].ordered = true;
  const double in_order_s = simulate(model, 400, 0).step_s;
  EXPECT_GT(in_order_s, 1.1 * as_ready_s);
  model.queues[0].capacity = 64;
  EXPECT_LT(simulate(model, 400, 0).step_s, 1.05 * as_ready_s);
}

TEST(SimulatedPipeline, LongerQueuesBridgeVariation) {
  PipelineModel model = one_stage(0, 1, 1);
  model.stages[0].lanes = {{}};
  for (int i = 0; i < 40; ++i) model.stages[0].lanes[0].push_back({i % 8 == 0 ? 0.044 : 0.004, 0});
  const double short_s = simulate(model, 200, 0).step_s;
  model.queues[0].capacity = 32;
  const double long_s = simulate(model, 200, 0).step_s;
  EXPECT_NEAR(long_s, 0.010, 5e-4);
  EXPECT_GT(short_s, 1.2 * long_s);
}

TEST(SimulatedPipeline, WhatCannotGoOnIsSaid) {
  PipelineModel model = one_stage(0.010, 1);
  model.inputs.push_back({0, 0});
  model.queues.push_back({1});
  model.inputs.push_back({1, 1});  // nobody puts there
  EXPECT_EQ(simulate(model, 20, 0).step_s, 0);
}

}  // namespace
}  // namespace headrace::analysis
