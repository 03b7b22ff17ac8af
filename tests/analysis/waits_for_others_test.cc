// Waits that are not an operator's own work: for a lock, a server, other programs, other threads.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "headrace/analysis/read/interpreter_lock.h"
#include "headrace/analysis/read/shared_waits.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/gate.h"
#include "headrace/analysis/what_if/what_if.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

using profile::OperatorProfile;
using profile::Profile;
using simulation::DataLoader;

Profile waiting_loader(int workers, double sleep_s, double cpu_s = 1e-4, double foreign_cores = 0,
                       bool stream = false) {
  const DataLoader loader{.parts = {{.name = "Images", .sleep_s = sleep_s, .cpu_s = cpu_s},
                                    {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
                          .num_workers = workers,
                          .stream = stream,
                          .compute_s = 0.010,
                          .cores = 4,
                          .foreign_cores = foreign_cores};
  return simulation::simulate(loader, 1);
}

OperatorProfile& op_of_images(Profile& profile) {
  for (OperatorProfile& op : profile.operators) {
    if (op.name == "Images") return op;
  }
  throw std::logic_error("no Images");
}

bool mentions(const Diagnosis& diagnosis, const std::string& words) {
  if (diagnosis.summary.find(words) != std::string::npos) return true;
  for (const Evidence& evidence : diagnosis.evidence) {
    if (evidence.says.find(words) != std::string::npos) return true;
  }
  for (const Advice& advice : diagnosis.advice) {
    if (advice.text.find(words) != std::string::npos) return true;
  }
  return false;
}

Profile workers_behind_lock(double share, int workers = 3) {
  Profile profile = waiting_loader(workers, 0.008);
  op_of_images(profile).functions = {
      {"time.sleep in read (archive.py:12)", 1 - share},
      {"SemLock.__enter__ (synchronize.py:94) in __getitem__ (archive.py:20)", share}};
  return profile;
}

TEST(SharedResource, WorkersThatQueueForALockGetNoMoreOfThem) {
  const Diagnosis diagnosis = diagnose(workers_behind_lock(0.41));
  EXPECT_EQ(diagnosis.cause, Cause::shared_resource);
  EXPECT_EQ(diagnosis.op, "Images");
  for (const Advice& advice : diagnosis.advice) EXPECT_EQ(advice.parameter, "") << advice.text;
  EXPECT_TRUE(mentions(diagnosis, "41 % of its time acquiring a lock"));
}

TEST(SharedResource, WorkersThatHardlyComputeQueueForALockAndJoinNoThreads) {
  Profile profile = workers_behind_lock(0.41);
  OperatorProfile& images = op_of_images(profile);
  for (profile::WorkerProfile& worker : images.per_worker) {
    worker.cpu_s = 0.01 * worker.busy_s;
    worker.process_cpu_s = 0.02 * worker.busy_s;
  }
  EXPECT_EQ(diagnose(profile).cause, Cause::shared_resource);
  for (profile::WorkerProfile& worker : images.per_worker) worker.process_cpu_s = 0.6 * worker.busy_s;
  EXPECT_NE(diagnose(profile).cause, Cause::shared_resource);
}

TEST(SharedResource, ALockThatIsMostlyFreeOrHasOneWorkerIsNone) {
  EXPECT_EQ(diagnose(workers_behind_lock(0.05)).cause, Cause::too_few_workers);
  EXPECT_EQ(diagnose(workers_behind_lock(0.41, 1)).cause, Cause::too_few_workers);
}

TEST(SharedResource, BesideAServerThePredictionContainsToday) {
  Profile profile = waiting_loader(2, 0.008);
  op_of_images(profile).functions = {{"socket.recv_into in fetch (store.py:30)", 0.89}};
  EXPECT_NEAR(peer_share(op_of_images(profile)), 0.89, 1e-9);
  const Diagnosis diagnosis = diagnose(profile);
  ASSERT_FALSE(diagnosis.advice.empty());
  const Advice& first = diagnosis.advice.front();
  EXPECT_EQ(first.parameter, "num_workers");
  ASSERT_TRUE(first.high);
  EXPECT_GE(*first.high, profile.sink.step_s);
}

TEST(OtherPrograms, AChangeIsPredictedWithTheCoresThatTheyLeave) {
  Profile profile = waiting_loader(1, 0.004);
  profile.host.cpu_share = 0.1;
  profile.host.foreign_cpu_share = 0.6;
  profile.host.foreign_contention_share = 0.4;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "num_workers");
  EXPECT_TRUE(diagnosis.advice.front().predicted_step_s);
  EXPECT_TRUE(mentions(diagnosis, "headrace tune"));
  // What a faster input gains assumes that the others stay.
  for (const Evidence& evidence : diagnosis.evidence) EXPECT_FALSE(evidence.figures.contains("most_speedup"));
}

TEST(OtherPrograms, AHealthyLoopThatWaitsForACoreIsNotLimitedByItsStep) {
  Profile profile = waiting_loader(2, 0.002);
  profile.host.cpu_share = 0.1;
  profile.host.foreign_cpu_share = 0.85;
  profile.sink.compute_core_wait_s = 0.3 * profile.sink.step_s;
  const Diagnosis diagnosis = diagnose(profile);
  ASSERT_EQ(diagnosis.kind, VerdictKind::not_input_bound) << diagnosis.summary;
  EXPECT_NE(diagnosis.summary.find("other processes hold the cores"), std::string::npos) << diagnosis.summary;
  profile.host.foreign_cpu_share = 0.02;
  EXPECT_EQ(diagnose(profile).summary.find("other processes"), std::string::npos);
}

TEST(OtherPrograms, ALoopThatStarvesAllTheTimeIsNotHealthy) {
  // Few and uneven waits may be the neighbours'; they are not where nothing else is in the step.
  Profile profile = waiting_loader(1, 0.004);
  profile.host.cpu_share = 0.05;
  profile.host.foreign_cpu_share = 0.9;
  for (std::size_t i = 0; i < profile.sink.sequence.size(); ++i) {
    profile.sink.sequence[i].wait_s = i % 40 == 0 ? 30 * profile.sink.step_s : 0.2 * profile.sink.step_s;
  }
  EXPECT_NE(diagnose(profile).kind, VerdictKind::not_input_bound);
}

TEST(UnknownHandOff, IsNotCheap) {
  Profile profile = waiting_loader(0, 0.004);
  EXPECT_TRUE(predictor_for(profile)->predict({{Change::Kind::kWorkers, 0, 2, 1}}).known);
  profile.settings.push_back({"handoff", "unknown"});
  const Prediction prediction = predictor_for(profile)->predict({{Change::Kind::kWorkers, 0, 2, 1}});
  EXPECT_FALSE(prediction.known);
  EXPECT_NE(prediction.why_not.find("cannot be pickled"), std::string::npos);
}

TEST(Streams, WorkersThatEachReadAllOfItGetNoMoreOfThem) {
  Profile profile = waiting_loader(2, 0.008, 1e-4, 0, true);
  EXPECT_EQ(diagnose(profile).advice.front().parameter, "num_workers");
  profile.settings.push_back({"each_worker_reads", "all"});
  const Diagnosis diagnosis = diagnose(profile);
  for (const Advice& advice : diagnosis.advice) EXPECT_NE(advice.parameter, "num_workers");
  EXPECT_TRUE(mentions(diagnosis, "every row comes 2 times"));
}

TEST(Streams, WorkersWithoutAnyDataAreMissed) {
  Profile profile = waiting_loader(4, 0.008, 1e-4, 0, true);
  for (OperatorProfile& op : profile.operators) {
    if (op.per_worker.size() == 4) op.per_worker.resize(1);  // the others never made an item
  }
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::shard_imbalance);
  EXPECT_TRUE(mentions(diagnosis, "3 workers never had any"));
}

TEST(StartUp, ASamplerThatDrawsTheWholeOrderIsNamed) {
  Profile profile = waiting_loader(2, 0.0005);
  profile.epochs = 3;
  profile.startup.first_batch_s = 5;
  profile.startup.later_epochs_s = 10;
  // First batches that have to be made in any case: workers that stay would save nothing.
  EXPECT_TRUE(diagnose(profile).advice.empty());
  profile.startup.worker_start_s = 4.5;
  EXPECT_EQ(diagnose(profile).advice.front().parameter, "persistent_workers");
  profile.settings.push_back({"first_draw", "WeightedRandomSampler 4.8"});
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::startup);
  EXPECT_EQ(diagnosis.op, std::nullopt);  // healthy steps
  EXPECT_NE(diagnosis.summary.find("4.80 s in WeightedRandomSampler"), std::string::npos)
      << diagnosis.summary;
  for (const Advice& advice : diagnosis.advice) EXPECT_EQ(advice.parameter, "");
}

TEST(MemoryGrowth, WhatOthersTakeIsNotTheRuns) {
  Profile profile = waiting_loader(2, 0.0005);
  profile.host.available_memory = 20'000'000'000;
  profile.host.memory_loss_per_s = 3e7;
  profile.host.memory = static_cast<std::int64_t>(3e8 * profile.elapsed_s);
  const auto risks = diagnose(profile).risks;
  ASSERT_EQ(risks.size(), 1U);
  EXPECT_NE(risks.front().says.find("that are left last 0.19 hours"), std::string::npos)
      << risks.front().says;
  profile.host.memory = static_cast<std::int64_t>(1e7 * profile.elapsed_s);
  EXPECT_TRUE(diagnose(profile).risks.empty());
}

TEST(LongSteps, AreSaidWithTheirPeriod) {
  Profile profile = waiting_loader(2, 0.0005);
  ASSERT_GE(profile.sink.sequence.size(), 100U);
  for (std::size_t i = 0; i < profile.sink.sequence.size(); i += 25) profile.sink.sequence[i].compute_s = 0.2;
  EXPECT_TRUE(mentions(diagnose(profile), "one in 25 steps"));
  EXPECT_FALSE(mentions(diagnose(waiting_loader(2, 0.0005)), "in the loop itself"));
}

}  // namespace
}  // namespace headrace::analysis
