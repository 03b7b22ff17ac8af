// Parameters under their users' names: what can be asked, what is refused, what is answered.
#include <gtest/gtest.h>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/analysis/verdict/parameters.h"
#include "headrace/analysis/verdict/plan.h"
#include "headrace/analysis/what_if/curve.h"
#include "headrace/analysis/what_if/what_if.h"
#include "headrace/profile/errors.h"
#include "support/simulation/line.h"
#include "support/simulation/loader.h"
#include "support/verdict_words.h"

namespace headrace::analysis {
namespace {

using profile::Profile;
using simulation::Line;

Line two_stages() {
  return {.stages = {{.name = "read", .sleep_s = 0.014}, {.name = "decode", .sleep_s = 0.030}},
          .compute_s = 0.010,
          .cores = 8};
}

Profile loader(int workers) {
  return simulation::simulate(simulation::DataLoader{.parts = {{.name = "Images", .sleep_s = 0.005}},
                                                     .num_workers = workers,
                                                     .batch_size = 8,
                                                     .compute_s = 0.010,
                                                     .cores = 8},
                              1);
}

/// The message of the UsageError; "" if there is none.
std::string refused(const Profile& profile, const std::vector<Assignment>& assignments) {
  try {
    what_if(profile, assignments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(WhatIf, AnswersWhatTheSamePipelineDoes) {
  const Line line = two_stages();
  const WhatIf then = what_if(simulation::simulate(line, 1), {{"decode.workers", "2"}});
  Line changed = line;
  changed.stages[1].workers = 2;
  const double measured_s = simulation::simulate(changed, 2).sink.step_s;
  ASSERT_TRUE(then.known);
  EXPECT_NEAR(then.step_s, measured_s, 0.05 * measured_s);
  EXPECT_LE(then.low_s, measured_s);
  EXPECT_GE(then.high_s, measured_s);
  EXPECT_EQ(then.bottleneck, "decode");
}

TEST(WhatIf, ChangesAreMadeTogether) {
  const Profile profile = simulation::simulate(two_stages(), 1);
  const WhatIf then = what_if(profile, {{"decode.workers", "4"}, {"read.speedup", "2"}});
  EXPECT_NEAR(then.step_s, 0.010, 0.001);
  EXPECT_EQ(then.bottleneck, "sink");
}

TEST(WhatIf, NothingChangedIsTheRunItself) {
  const Profile profile = simulation::simulate(two_stages(), 1);
  EXPECT_NEAR(what_if(profile, {}).step_s, profile.sink.step_s, 0.02 * profile.sink.step_s);
}

TEST(WhatIf, UnknownParametersAreAnsweredWithThoseThatExist) {
  const std::string said = refused(simulation::simulate(two_stages(), 1), {{"num_workers", "4"}});
  EXPECT_NE(said.find("num_workers"), std::string::npos);
  for (const char* name : {"decode.workers", "read_out.capacity", "decode.executor", "decode.speedup"}) {
    EXPECT_NE(said.find(name), std::string::npos) << said;
  }
  EXPECT_NE(refused(loader(2), {{"decode.workers", "4"}}).find("prefetch_factor"), std::string::npos);
}

TEST(WhatIf, ValuesOutOfRangeAreRefusedWithTheRange) {
  const Profile profile = loader(2);
  for (const char* value : {"1000000", "-1", "2.5", "many", "", "nan", "1e400"}) {
    EXPECT_NE(refused(profile, {{"num_workers", value}}).find("0 to 512"), std::string::npos) << value;
  }
  EXPECT_NE(refused(profile, {{"prefetch_factor", "0"}}), "");
  EXPECT_NE(refused(profile, {{"in_order", "maybe"}}), "");
  EXPECT_NE(refused(profile, {{"Images.speedup", "0"}}), "");
}

TEST(WhatIf, PrefetchNeedsWorkers) {
  EXPECT_NE(refused(loader(0), {{"prefetch_factor", "4"}}).find("num_workers"), std::string::npos);
  EXPECT_EQ(refused(loader(0), {{"prefetch_factor", "4"}, {"num_workers", "2"}}), "");
  EXPECT_NE(refused(loader(2), {{"prefetch_factor", "4"}, {"num_workers", "0"}}), "");
}

TEST(WhatIf, AFrameworksOwnLimitHolds) {
  Profile profile = simulation::simulate(two_stages(), 1);
  for (profile::OperatorProfile& op : profile.operators) {
    for (profile::Parameter& parameter : op.parameters) parameter.max = 16;
  }
  EXPECT_NE(refused(profile, {{"decode.workers", "17"}}).find("1 to 16"), std::string::npos);
}

TEST(WhatIf, SaysWhyItDoesNotKnow) {
  Profile profile = simulation::simulate(two_stages(), 1);
  profile.sink.step_s *= 3;  // nothing that was recorded explains such steps
  const WhatIf then = what_if(profile, {{"decode.workers", "2"}});
  EXPECT_FALSE(then.known);
  EXPECT_NE(then.reason.find("is not reproduced"), std::string::npos) << then.reason;
  const WhatIf empty = what_if(Profile{}, {});
  EXPECT_FALSE(empty.known);
  EXPECT_FALSE(empty.reason.empty());
}

TEST(WhatIf, ThreadsFillNoMoreCoresBesideAComputingStep) {
  const Line line{.stages = {{.name = "decode", .cpu_s = 0.010}},
                  .compute_s = 0.007,
                  .compute_cpu_s = 0.007,
                  .cores = 2,
                  .look_at_threads = false};
  Profile profile = simulation::simulate(line, 1);
  ASSERT_GE(profile.host.cpu_share.value(), 0.8);
  profile.host.gil_share = 0.2;
  const WhatIf python = what_if(profile, {{"decode.workers", "2"}});
  profile.host.gil_share.reset();
  const WhatIf cpp = what_if(profile, {{"decode.workers", "2"}});
  ASSERT_TRUE(python.known && cpp.known);
  EXPECT_NEAR(python.step_s, profile.sink.step_s, 0.05 * profile.sink.step_s);
  EXPECT_LT(cpp.step_s, 0.95 * profile.sink.step_s);
}

TEST(WhatIf, ThreadsThatReadAllTheTimeAreNotPredictedButAsProcesses) {
  Line line = two_stages();
  line.stages[1] = {.name = "cut", .cpu_s = 0.030};
  Profile profile = simulation::simulate(line, 1);
  profile.host.gil_share = 0;
  const auto reads = [&](std::uint64_t calls) {
    for (profile::WorkerProfile& worker : profile.operators[1].per_worker) worker.read_calls = calls;
    return what_if(profile, {{"cut.workers", "2"}});
  };
  EXPECT_TRUE(reads(1000).known);
  const Diagnosis before = diagnose(profile);
  ASSERT_FALSE(before.advice.empty());
  EXPECT_EQ(before.advice.front().parameter, "cut.workers");
  EXPECT_NE(reads(10'000'000).reason.find("small reads"), std::string::npos);
  const Diagnosis after = diagnose(profile);
  ASSERT_FALSE(after.advice.empty());
  EXPECT_EQ(after.advice.front().parameter, "cut.executor");
  EXPECT_GT(after.advice.front().speedup.value_or(0), 1.05);
}

TEST(WhatIf, NorWhatOthersGainBesideThem) {
  Line line = two_stages();
  line.stages[1] = {.name = "cut", .sleep_s = 0.030};
  Profile profile = simulation::simulate(line, 1);
  profile.host.gil_share = 0;
  ASSERT_TRUE(what_if(profile, {{"cut.workers", "2"}}).known);
  for (profile::WorkerProfile& worker : profile.operators[0].per_worker) worker.read_calls = 10'000'000;
  EXPECT_NE(what_if(profile, {{"cut.workers", "2"}}).reason.find("small reads"), std::string::npos);
  EXPECT_TRUE(what_if(profile, {{"cut.workers", "1"}}).known);
}

TEST(WhatIf, AbstainsWhereThreadsOfALibraryFillTheCores) {
  Profile profile = loader(2);
  for (profile::OperatorProfile& op : profile.operators) op.cpu_s = 0.8 * op.busy_s;
  profile.host.process_cpu_cores = 0.1;
  profile.host.cpu_share = 0.98;
  profile.host.foreign_cpu_share = 0;
  EXPECT_NE(what_if(profile, {{"num_workers", "3"}}).reason.find("threads of a library"), std::string::npos);
  EXPECT_TRUE(what_if(profile, {{"prefetch_factor", "4"}}).reason.find("library") == std::string::npos);
  profile.host.cpu_share = 0.8;  // a third worker fills the rest
  EXPECT_NE(what_if(profile, {{"num_workers", "3"}}).reason.find("threads of a library"), std::string::npos);
  EXPECT_TRUE(what_if(profile, {{"num_workers", "1"}}).known);
  profile.host.cpu_share = 0.5;
  EXPECT_TRUE(what_if(profile, {{"num_workers", "3"}}).known);
}

TEST(WhatIf, AbsurdlyLargeRecordingsAreAnsweredAtOnce) {
  Profile profile = simulation::simulate(two_stages(), 1);
  for (int i = 0; i < 5000; ++i) {
    profile.operators.push_back(profile.operators.front());
    profile.operators.back().name = "read#" + std::to_string(i + 2);
    profile.operators.back().segment = 100 + i;
    profile.operators.back().workers = 1'000'000;
  }
  const WhatIf then = what_if(profile, {{"decode.workers", "2"}});
  EXPECT_FALSE(then.known);
  EXPECT_FALSE(then.reason.empty());
  diagnose(profile);
}

TEST(WhatIf, LoopsInTheGraphAreCutOpen) {
  Profile profile = simulation::simulate(two_stages(), 1);
  profile::QueueProfile back = profile.queues.front();  // free buffers go back to the reader
  back.name = "buffers";
  back.from = "decode, sink";
  back.from_operators = {1};
  back.to = "read";
  back.to_operators = {0};
  profile.queues.push_back(back);
  const WhatIf then = what_if(profile, {{"decode.workers", "2"}});
  ASSERT_TRUE(then.known);
  EXPECT_NEAR(then.step_s, 0.015, 0.002);
}

TEST(CachedPredictor, SimulatesEachChangeOnce) {
  struct Counting : Predictor {
    using Predictor::Predictor;
    Prediction predict(const std::vector<Change>& changes) const override {
      ++asked;
      Prediction prediction;
      prediction.step_s = changes.front().to;
      return prediction;
    }
    mutable int asked = 0;
  };
  const profile::Profile profile;
  auto counting = std::make_unique<Counting>(profile);
  const Counting& inner = *counting;
  const CachedPredictor cached(std::move(counting));
  EXPECT_EQ(&cached.profile(), &profile);
  for (int again = 0; again < 2; ++again) {
    for (int workers : {2, 3}) {
      EXPECT_EQ(cached.predict({{Change::Kind::kWorkers, 0, workers, 1}}).step_s, workers);
      EXPECT_EQ(cached.predict({{Change::Kind::kCapacity, 0, workers, 1}}).step_s, workers);
    }
  }
  EXPECT_EQ(inner.asked, 4);
}

TEST(Curve, AsksAboutTheWorkersOfTheBottleneckUntilSomethingElseIsTheLimit) {
  const Profile profile = simulation::simulate(two_stages(), 1);
  const StepCurve curve = step_curve(profile, diagnose(profile));
  EXPECT_EQ(curve.parameter, "decode.workers");
  EXPECT_EQ(curve.now, 1);
  ASSERT_GE(curve.points.size(), 4U);
  EXPECT_EQ(curve.points.front().value, 1);
  EXPECT_DOUBLE_EQ(curve.points.front().then.step_s, profile.sink.step_s) << "measured, not predicted";
  EXPECT_EQ(curve.points.front().then.limit, "decode");
  // Three workers make a batch in 10 ms, read one in 14.
  EXPECT_NEAR(curve.points[1].then.step_s, 0.015, 0.001);
  EXPECT_NEAR(curve.points.back().then.step_s, 0.014, 0.001);
  EXPECT_EQ(curve.points.back().then.limit, "read");
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    EXPECT_GT(curve.points[i].value, curve.points[i - 1].value);
    EXPECT_EQ(curve.points[i].then.step_s,
              what_if(profile, {{"decode.workers", std::to_string(curve.points[i].value)}}).step_s);
  }
}

TEST(Curve, AsksAboutTheWorkersOfALoaderFromNoneOn) {
  const Profile profile = loader(2);
  const StepCurve curve = step_curve(profile, diagnose(profile));
  EXPECT_EQ(curve.parameter, "num_workers");
  EXPECT_EQ(curve.now, 2);
  ASSERT_GE(curve.points.size(), 5U);
  EXPECT_EQ(curve.points.front().value, 0);
  EXPECT_LE(curve.points.size(), 12U);
}

TEST(Curve, IsEmptyWhereNothingIsPredicted) {
  Profile profile;
  EXPECT_TRUE(step_curve(profile, diagnose(profile)).points.empty());
  profile.sink.step_s = 0.01;
  profile.sink.steps = 100;
  EXPECT_TRUE(step_curve(profile, diagnose(profile)).points.empty());
}

TEST(Plan, GoesOnUntilTheTrainingStepIsTheLimit) {
  const Diagnosis diagnosis = diagnose(simulation::simulate(two_stages(), 1));
  ASSERT_GE(diagnosis.advice.size(), 1U);
  EXPECT_EQ(diagnosis.op, "decode");
  EXPECT_EQ(diagnosis.advice[0].parameter, "decode.workers");
  EXPECT_TRUE(diagnosis.advice[0].after.empty());
  EXPECT_EQ(diagnosis.next_bottleneck, "read");
}

TEST(Plan, NextChangeIsPredictedOnTopOfTheFirst) {
  Line line = two_stages();
  line.stages = {{.name = "list", .sleep_s = 1e-3},
                 {.name = "read", .sleep_s = 0.020},
                 {.name = "decode", .sleep_s = 0.050}};
  const Diagnosis diagnosis = diagnose(simulation::simulate(line, 1));
  ASSERT_GE(diagnosis.advice.size(), 2U);
  EXPECT_EQ(diagnosis.advice[0].parameter, "decode.workers");
  EXPECT_EQ(diagnosis.advice[1].parameter, "read.workers");
  EXPECT_EQ(diagnosis.advice[1].after,
            std::vector<std::string>{"decode.workers=" + profile::as_written(diagnosis.advice[0].to)});
  EXPECT_LT(*diagnosis.advice[1].predicted_step_s, 0.9 * *diagnosis.advice[0].predicted_step_s);
  Line changed = line;
  changed.stages[2].workers = static_cast<int>(std::get<std::int64_t>(diagnosis.advice[0].to));
  changed.stages[1].workers = static_cast<int>(std::get<std::int64_t>(diagnosis.advice[1].to));
  const double measured_s = simulation::simulate(changed, 2).sink.step_s;
  EXPECT_NEAR(*diagnosis.advice[1].predicted_step_s, measured_s, 0.1 * measured_s);
}

TEST(Plan, AlternatingOperatorsAreRelievedTogether) {
  Line line{
      .stages = {{.name = "list", .sleep_s = 5e-4},
                 {.name = "decode", .sleep_s = 0.03, .factor = simulation::in_turn(24, 1, 0.1, true)},
                 {.name = "augment", .sleep_s = 0.03, .factor = simulation::in_turn(24, 1, 0.1, false)}},
      .compute_s = 0.012,
      .steps = 240,
      .cores = 8};
  const Diagnosis diagnosis = diagnose(simulation::simulate(line, 1));
  ASSERT_EQ(diagnosis.cause, Cause::alternating);
  ASSERT_GE(diagnosis.advice.size(), 2U);
  line.stages[1].workers = line.stages[2].workers = 1;
  for (const Advice& advice : {diagnosis.advice[0], diagnosis.advice[1]}) {
    for (simulation::Stage& stage : line.stages) {
      if (advice.parameter == stage.name + ".workers")
        stage.workers = static_cast<int>(std::get<std::int64_t>(advice.to));
    }
  }
  EXPECT_GT(line.stages[1].workers, 1);
  EXPECT_GT(line.stages[2].workers, 1);
  const double measured_s = simulation::simulate(line, 2).sink.step_s;
  EXPECT_NEAR(*diagnosis.advice[1].predicted_step_s, measured_s, 0.15 * measured_s);
}

TEST(Memory, MoreBatchesReadyTakeMore) {
  Profile profile = loader(3);  // prefetch_factor 2
  EXPECT_FALSE(more_memory(profile, {{Change::Kind::kWindow, 0, 8, 1}}));
  profile.sink.batch_bytes = 1'000'000;
  EXPECT_EQ(more_memory(profile, {{Change::Kind::kWindow, 0, 8, 1}}), 18e6);
  EXPECT_EQ(more_memory(profile, {{Change::Kind::kWorkers, 0, 5, 1}}), 4e6);
  EXPECT_EQ(more_memory(profile, {{Change::Kind::kWorkers, 0, 2, 1}}), -2e6);
  EXPECT_FALSE(more_memory(profile, {{Change::Kind::kOrder, 0, 0, 1}}));
}

TEST(Memory, OnlyQueuesOfBatchesAreCounted) {
  Profile profile = simulation::simulate(two_stages(), 1);
  profile.sink.batch_bytes = 1'000'000;
  const int last = static_cast<int>(profile.queues.size()) - 1;
  const int now = static_cast<int>(profile.queues.back().capacity);
  EXPECT_EQ(more_memory(profile, {{Change::Kind::kCapacity, last, now + 6, 1}}), 6e6);
  EXPECT_FALSE(more_memory(profile, {{Change::Kind::kCapacity, 0, 64, 1}}));
}

TEST(Memory, TheAdviceSaysSo) {
  Profile profile =
      simulation::simulate(simulation::DataLoader{.parts = {{.name = "Images", .sleep_s = 0.005}},
                                                  .num_workers = 1,
                                                  .batch_size = 8,
                                                  .compute_s = 0.010,
                                                  .cores = 8},
                           1);
  profile.sink.batch_bytes = 40'000'000;
  const Diagnosis diagnosis = diagnose(profile);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "num_workers");
  EXPECT_GT(diagnosis.advice.front().memory_bytes.value_or(0), 79e6);
  EXPECT_NE(diagnosis.advice.front().text.find("MB more wait in memory"), std::string::npos);
}

}  // namespace
}  // namespace headrace::analysis
