// Causes that lie in the machine rather than in the loader's parameters, each beside its look-alike.
#include <gtest/gtest.h>

#include <functional>

#include "headrace/analysis/read/interpreter_lock.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/gate.h"
#include "headrace/analysis/what_if/what_if.h"
#include "support/simulation/line.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

using profile::OperatorProfile;
using profile::Profile;
using profile::WorkerProfile;
using simulation::DataLoader;

DataLoader images(int workers, double sleep_s, double cpu_s) {
  return {.parts = {{.name = "Images", .sleep_s = sleep_s, .cpu_s = cpu_s},
                    {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
          .num_workers = workers,
          .compute_s = 0.010,
          .cores = 4};
}

OperatorProfile& op_named(Profile& profile, const std::string& name) {
  for (OperatorProfile& op : profile.operators) {
    if (op.name == name) return op;
  }
  throw std::logic_error(name);
}

void each_worker(OperatorProfile& op, const std::function<void(WorkerProfile&)>& change) {
  for (WorkerProfile& worker : op.per_worker) change(worker);
}

bool says_anywhere(const Diagnosis& diagnosis, const std::string& words) {
  for (const Evidence& evidence : diagnosis.evidence) {
    if (evidence.says.find(words) != std::string::npos) return true;
  }
  for (const Advice& advice : diagnosis.advice) {
    if (advice.text.find(words) != std::string::npos) return true;
  }
  return false;
}

Profile reads(double waits_share, int workers = 1) {
  Profile profile = simulation::simulate(images(workers, 0.004, 0.001), 1);
  OperatorProfile& op = op_named(profile, "Images");
  op.storage_wait_s = waits_share * op.busy_s;
  each_worker(op, [](WorkerProfile& worker) {
    worker.read_calls = 1000;
    worker.read_bytes = 100'000'000;
    worker.storage_bytes = 90'000'000;
    worker.major_faults = 0;
  });
  return profile;
}

TEST(StorageBound, SaysWhatItReadsAndWhatAWarmEpochTakes) {
  const Profile profile = reads(0.75);
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::storage_bound);
  EXPECT_EQ(diagnosis.op, "Images");
  EXPECT_TRUE(says_anywhere(diagnosis, "not in the page cache (90 MB of 100 MB"));
  ASSERT_GE(diagnosis.advice.size(), 2U);  // more readers, and faster reads
  EXPECT_EQ(diagnosis.advice[1].parameter, "num_workers");
  EXPECT_GE(*diagnosis.advice[1].high, profile.sink.step_s);
  const Advice& warm = diagnosis.advice.front();
  EXPECT_NE(warm.text.find("a warm epoch"), std::string::npos);
  ASSERT_TRUE(warm.predicted_step_s);
  EXPECT_NEAR(*warm.predicted_step_s, 0.0115, 0.0015);  // 8 x 1.25 ms beside a step of 10 ms
}

TEST(StorageBound, NamesSmallReadsAndFaults) {
  Profile profile = reads(0.75);
  each_worker(op_named(profile, "Images"), [](WorkerProfile& worker) { worker.read_calls = 20'000; });
  EXPECT_TRUE(says_anywhere(diagnose(profile), "small reads (5.0 kB each"));
  EXPECT_TRUE(says_anywhere(diagnose(profile), "pack the items"));
  each_worker(op_named(profile, "Images"), [](WorkerProfile& worker) {
    worker.read_calls = 10;
    worker.read_bytes = 1000;
    worker.major_faults = 40'000;
  });
  EXPECT_TRUE(says_anywhere(diagnose(profile), "memory-mapped files"));
}

TEST(StorageBound, NamesFileSystemsThatAreNotOfThisMachine) {
  Profile profile = reads(0.9);
  OperatorProfile& op = op_named(profile, "Images");
  op.file_system = "ext4";
  EXPECT_FALSE(says_anywhere(diagnose(profile), "ext4"));
  op.file_system = "nfs4";
  EXPECT_TRUE(says_anywhere(diagnose(profile), "came from storage) on a network file system (nfs4)"));
  op.file_system = "fuse";
  each_worker(op, [](WorkerProfile& worker) { worker.storage_bytes = 0; });
  EXPECT_TRUE(says_anywhere(diagnose(profile), "of its time: a file system in user space (fuse)"));
}

TEST(StorageBound, OneReaderMayBeAsFastAsThree) {
  const Profile profile = reads(0.75, 3);
  const WhatIf alone = what_if(profile, {{"num_workers", "1"}});
  ASSERT_TRUE(alone.known);
  EXPECT_GT(alone.step_s, 1.5 * profile.sink.step_s);
  EXPECT_LE(alone.low_s, profile.sink.step_s);
  EXPECT_GT(what_if(reads(0.02, 3), {{"num_workers", "1"}}).low_s, profile.sink.step_s);
}

TEST(StorageBound, ABodyThatSleepsOrAsksARemoteServiceWaitsForNoDisk) {
  const Diagnosis diagnosis = diagnose(reads(0.02));
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
  EXPECT_EQ(diagnosis.op, "Images");
}

/// Each worker's process computes as much again in threads of a library.
Profile with_library_threads(int workers, double elsewhere) {
  Profile profile = simulation::simulate(images(workers, 0, 0.006), 1);
  OperatorProfile& op = op_named(profile, "Images");
  op.run_queue_wait_s = 0.3 * op.busy_s;
  each_worker(op, [&](WorkerProfile& worker) {
    worker.process_cpu_s = worker.cpu_s.value_or(0) / (1 - elsewhere);
    worker.process_threads = 8;
  });
  return profile;
}

TEST(Oversubscribed, WorkersAndTheThreadsOfTheirLibraries) {
  const Diagnosis diagnosis = diagnose(with_library_threads(4, 0.6));
  EXPECT_EQ(diagnosis.cause, Cause::oversubscribed);
  EXPECT_TRUE(says_anywhere(diagnosis, "cv2.setNumThreads(0)"));
  EXPECT_TRUE(says_anywhere(diagnosis, "up to 8 threads in one process"));
}

TEST(Oversubscribed, OneWorkerThatComputesInThreadsIsMeantTo) {
  EXPECT_NE(diagnose(with_library_threads(1, 0.6)).cause, Cause::oversubscribed);
  EXPECT_NE(diagnose(with_library_threads(4, 0.05)).cause, Cause::oversubscribed);
}

TEST(Oversubscribed, OtherProgramsHaveTheCores) {
  Profile profile = with_library_threads(4, 0.6);
  profile.host.cpu_share = 0.15;
  profile.host.foreign_cpu_share = 0.8;
  EXPECT_NE(diagnose(profile).cause, Cause::oversubscribed);
}

TEST(CpuSaturated, NamesWhoeverUsesTheCoresThatTheCandidateWaitsFor) {
  DataLoader loader = images(2, 0, 0.005);
  loader.parts.insert(loader.parts.begin() + 1, {.name = "Resize", .cpu_s = 0.002});
  loader.cores = 2;
  Profile profile = simulation::simulate(loader, 1);
  profile.host.cpu_share = 0.95;
  OperatorProfile& slow = op_named(profile, "Images");
  slow.run_queue_wait_s = 0.1 * slow.busy_s;
  EXPECT_EQ(diagnose(profile).cause, Cause::cpu_saturated);
  EXPECT_EQ(diagnose(profile).op, "Images");
  slow.cpu_s = 0.2 * slow.busy_s;
  slow.run_queue_wait_s = 0.75 * slow.busy_s;
  EXPECT_EQ(diagnose(profile).cause, Cause::cpu_saturated);
  EXPECT_EQ(diagnose(profile).op, "Resize");
}

TEST(CpuSaturated, BesideALibrarysThreadsWhoUsesMoreIsNotKnown) {
  simulation::Line line;
  line.compute_s = 0.002;
  line.stages = {{.name = "unpack", .sleep_s = 0.004}, {.name = "project", .sleep_s = 0.005}};
  Profile profile = simulation::simulate(line, 1);
  OperatorProfile& unpack = op_named(profile, "unpack");
  OperatorProfile& project = op_named(profile, "project");
  unpack.cpu_s = unpack.busy_s;
  project.cpu_s = 0.4 * project.busy_s;
  project.run_queue_wait_s = 0.6 * project.busy_s;
  profile.sink.compute_cpu_s = 0;
  profile.host.cores = 4;
  profile.host.cpu_share = 0.95;
  profile.host.process_cpu_cores = 3.8;
  const Diagnosis beside_a_pool = diagnose(profile);
  EXPECT_EQ(beside_a_pool.op, "project");
  EXPECT_TRUE(says_anywhere(beside_a_pool, "which operator starts them is not recorded"));
  EXPECT_FALSE(says_anywhere(beside_a_pool, "simulated without"));
}

/// Threads of `resize`, which computes more, wait for the lock.
Profile beside_tokenize() {
  simulation::Line line;
  line.compute_s = 0.002;
  line.stages = {{.name = "tokenize", .cpu_s = 0.003, .python = true}, {.name = "resize", .cpu_s = 0.004}};
  Profile profile = simulation::simulate(line, 1);
  profile.host.gil_share = 0.6;
  OperatorProfile& resize = op_named(profile, "resize");
  resize.lock_wait_s = 0.4 * resize.busy_s;
  return profile;
}

TEST(InterpreterLock, WhoHoldsItIsToBlameNotWhoComputesOrWaitsLonger) {
  Profile profile = beside_tokenize();
  OperatorProfile& tokenize = op_named(profile, "tokenize");
  OperatorProfile& resize = op_named(profile, "resize");
  tokenize.lock_held_s.reset();
  resize.lock_held_s.reset();
  const auto longest_holder = [&] {
    const InterpreterLock lock = read_interpreter_lock(profile);
    return lock.contended ? profile.operators[static_cast<std::size_t>(lock.longest_holder)].name : "";
  };
  EXPECT_EQ(longest_holder(), "resize");  // more CPU time, and nothing else is known
  tokenize.lock_held_s = 0.95 * tokenize.busy_s;
  resize.lock_held_s = 0.1 * resize.busy_s;
  EXPECT_EQ(longest_holder(), "tokenize");
  resize.lock_held_s = 0.001 * resize.busy_s;
  EXPECT_FALSE(read_interpreter_lock(profile).needed.at(1));
}

TEST(SlowSamples, ItemsThatFoundNoCoreOrTheLockTakenAreNoSlowItems) {
  const simulation::Line line{
      .stages = {{.name = "read", .sleep_s = 0.001},
                 {.name = "decode", .sleep_s = 0.001, .factor = simulation::rare(0.04, 80)}},
      .compute_s = 0.003};
  Profile profile = simulation::simulate(line, 1);
  EXPECT_EQ(diagnose(profile).cause, Cause::slow_samples);
  OperatorProfile& decode = op_named(profile, "decode");
  decode.run_queue_wait_s = 0.7 * decode.busy_s;
  EXPECT_NE(diagnose(profile).cause, Cause::slow_samples);
  decode.run_queue_wait_s = 0.4 * decode.busy_s;
  EXPECT_EQ(diagnose(profile).cause, Cause::slow_samples);
  decode.lock_wait_s = 0.3 * decode.busy_s;
  EXPECT_NE(diagnose(profile).cause, Cause::slow_samples);
}

TEST(Gate, WaitsOfTheLoopForACoreAreNotItsOwnCompute) {
  Profile profile = simulation::simulate(images(1, 0.004, 0.001), 1);
  profile.sink.sequence.clear();
  profile.host.cpu_share = 0.6;
  profile.host.foreign_cpu_share = 0.2;
  const auto input_share = [&] {
    return judge_gate(profile, read_interpreter_lock(profile), Thresholds().gate).input_share;
  };
  const double before = input_share();
  profile.sink.compute_core_wait_s = 0.2 * profile.sink.step_s;
  EXPECT_NEAR(input_share(), before + 0.75 * 0.2, 1e-6);  // a quarter of the cores in use is others'
}

/// Steps of 10 ms, of which the loop waits 2 ms for a core.
Profile crowded_steps(double cpu_s) {
  Profile profile = simulation::simulate(images(1, 0.004, 0.001), 1);
  profile::SinkProfile& sink = profile.sink;
  sink.compute_s = 0.010;
  sink.step_s = 0.020;
  sink.compute_cpu_s = cpu_s;
  sink.compute_core_wait_s = 0.002;
  profile.host.cpu_share = 0.9;
  profile.host.foreign_cpu_share = 0;
  sink.sequence.assign(100, {.compute_s = 0.010});
  return profile;
}

double alone_s(const Profile& profile) {
  return judge_gate(profile, read_interpreter_lock(profile), Thresholds().gate).own_compute_s;
}

void take(Profile& profile, double fastest_s) {
  for (std::size_t i = 0; i < 10; ++i) profile.sink.sequence[i].compute_s = fastest_s;
}

TEST(Gate, AStepThatComputesTakesAloneWhatItsFastestTake) {
  Profile profile = crowded_steps(0.008);
  profile.host.cores = 64;                     // hardly anybody is beside it
  EXPECT_NEAR(alone_s(profile), 0.008, 1e-5);  // no step was faster
  take(profile, 0.007);
  EXPECT_NEAR(alone_s(profile), 0.007, 1e-9);
  take(profile, 0.001);  // other work
  EXPECT_NEAR(alone_s(profile), 0.008 * 0.8, 1e-9);
}

TEST(Gate, AStepThatComputesIsSlowerBesideTheInput) {
  Profile profile = crowded_steps(0.010);
  profile.sink.compute_core_wait_s = 0;
  profile.host.cores = 2;
  OperatorProfile& op = op_named(profile, "Images");
  op.demand_s = 0.020 / op.workers;
  op.cpu_s = op.busy_s;
  EXPECT_NEAR(alone_s(profile), 0.010 / 1.08, 1e-9);  // CPU work beside CPU work
  take(profile, 0.001);                               // other work
  EXPECT_NEAR(alone_s(profile), 0.010 / 1.08, 1e-9);
  op.cpu_s = 0;
  EXPECT_NEAR(alone_s(profile), 0.010, 1e-4);
}

TEST(Gate, AStepThatSleepsTakesAloneWhatItsFastestTake) {
  Profile profile = crowded_steps(0.0001);
  take(profile, 0.009);
  EXPECT_NEAR(alone_s(profile), 0.009, 1e-9);  // it met others in most of what it waited
  take(profile, 0.0075);
  EXPECT_NEAR(alone_s(profile), 0.0075, 1e-9);  // and wakes up later than it is seen to wait
  take(profile, 0.001);                         // another length
  EXPECT_NEAR(alone_s(profile), 0.008 * 0.8, 1e-9);
  take(profile, 0.009);
  profile.sink.compute_core_wait_s = 0.006;
  EXPECT_NEAR(alone_s(profile), 0.009, 1e-9);
  profile.sink.compute_core_wait_s = 0.002;
  profile.sink.compute_lock_wait_s = 0.004;
  EXPECT_NEAR(alone_s(profile), 0.004, 1e-9) << "the fastest met the lock, too";
}

Profile on_cores(std::int64_t allowed, double used) {
  Profile profile = simulation::simulate(images(3, 0, 0.006), 1);
  profile.host.cpu_share = used;
  profile.host.foreign_cpu_share = 0.02;
  OperatorProfile& op = op_named(profile, "Images");
  op.run_queue_wait_s = 0.6 * op.busy_s;
  each_worker(op, [&](WorkerProfile& worker) { worker.allowed_cores = allowed; });
  return profile;
}

/// Batches are ready; 2 workers use the cores, and the loop waits for one for so much of its step.
Profile loop_waits_for_core(double core_wait_share) {
  Profile profile = simulation::simulate(images(2, 0, 0.0015), 1);
  profile.host.cores = 2;
  profile.host.cpu_share = 0.9;
  profile.sink.compute_core_wait_s = core_wait_share * profile.sink.step_s;
  profile.sink.sequence.clear();
  return profile;
}

TEST(Gate, CoresThatTheInputTakesFromTheLoopAreItsCost) {
  const Diagnosis diagnosis = diagnose(loop_waits_for_core(0.3));
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.cause, Cause::cpu_saturated);
  EXPECT_EQ(diagnosis.op, "Images");
  EXPECT_NEAR(diagnosis.share_of_step, 0.39, 0.02);  // receiving is a part of it
  EXPECT_NE(diagnosis.summary.find("waits for a core for 30 % of every step"), std::string::npos)
      << diagnosis.summary;
  EXPECT_TRUE(diagnosis.windows.empty());
}

TEST(CpuSaturated, NamesWhoseLibraryUsesTheCores) {
  Profile profile = loop_waits_for_core(0.3);
  ASSERT_EQ(diagnose(profile).op, "Images");
  OperatorProfile& collate = op_named(profile, "collate");
  collate.pool_cpu_s = 0.05 * collate.busy_s;
  EXPECT_EQ(diagnose(profile).op, "Images");
  collate.pool_cpu_s = 2 * op_named(profile, "Images").busy_s;
  EXPECT_EQ(diagnose(profile).op, "collate");
}

TEST(Gate, AMeasuredCeilingReplacesTheEstimate) {
  Profile profile = loop_waits_for_core(0.05);
  ASSERT_EQ(diagnose(profile).kind, VerdictKind::not_input_bound);
  profile.sink.ceiling_step_s = 0.6 * profile.sink.step_s;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_NEAR(diagnosis.share_of_step, 0.4, 1e-9);
  EXPECT_NEAR(diagnosis.evidence.front().figures.at("most_speedup"), 1 / 0.6, 1e-9);
  profile.sink.ceiling_step_s = profile.sink.step_s;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::not_input_bound);
}

TEST(Gate, CoresThatOthersTakeFromTheLoopAreNot) {
  EXPECT_EQ(diagnose(loop_waits_for_core(0.08)).kind, VerdictKind::not_input_bound);
  Profile beside = loop_waits_for_core(0.3);  // other programs
  beside.host.cpu_share = 0.4;
  beside.host.foreign_cpu_share = 0.6;
  EXPECT_EQ(diagnose(beside).kind, VerdictKind::not_input_bound);
  Profile pool = loop_waits_for_core(0.12);  // the step's own threads
  pool.host.process_cpu_cores = 1.5;
  pool.sink.compute_cpu_s = 0.5 * pool.sink.step_s;
  for (OperatorProfile& op : pool.operators) op.executor = profile::Executor::process;
  EXPECT_EQ(diagnose(pool).kind, VerdictKind::not_input_bound);
}

TEST(Pinned, WorkersOnOneCoreWhileOthersAreFree) {
  const Diagnosis diagnosis = diagnose(on_cores(1, 0.35));
  EXPECT_EQ(diagnosis.cause, Cause::pinned);
  EXPECT_TRUE(says_anywhere(diagnosis, "its workers may use 1 core"));
  EXPECT_TRUE(says_anywhere(diagnosis, "os.sched_setaffinity"));
}

TEST(Pinned, TheWholeRunOnFewCoresIsWanted) {
  EXPECT_NE(diagnose(on_cores(4, 0.35)).cause, Cause::pinned);
  EXPECT_NE(diagnose(on_cores(1, 0.95)).cause, Cause::pinned);
}

TEST(MemoryPressure, TasksWaitForMemory) {
  Profile profile = reads(0.75);
  profile.host.memory_pressure_share = 0.3;
  profile.host.refaulted_bytes = 2e9;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::memory_pressure);
  EXPECT_TRUE(says_anywhere(diagnosis, "2.0 GB were read again"));
}

TEST(MemoryPressure, ALargeStableCacheIsNone) {
  Profile profile = reads(0.75);
  profile.host.memory_pressure_share = 0.01;
  profile.host.refaulted_bytes = 1e6;
  profile.host.memory = 60'000'000'000;
  EXPECT_EQ(diagnose(profile).cause, Cause::storage_bound);
}

Profile collecting(double share) {
  Profile profile = simulation::simulate(images(1, 0, 0.004), 1);
  OperatorProfile& op = op_named(profile, "Images");
  each_worker(op, [&](WorkerProfile& worker) { worker.gc_s = share * worker.busy_s; });
  return profile;
}

TEST(GcPause, TheCollectorTakesAPartOfTheWorkersTime) {
  const Diagnosis diagnosis = diagnose(collecting(0.5));
  EXPECT_EQ(diagnosis.cause, Cause::gc_pause);
  EXPECT_TRUE(says_anywhere(diagnosis, "gc.freeze()"));
  ASSERT_TRUE(diagnosis.advice.front().predicted_step_s);
  EXPECT_LT(*diagnosis.advice.front().predicted_step_s, 0.7 * profile::Profile(collecting(0.5)).sink.step_s);
}

TEST(GcPause, AUsualShareIsNot) { EXPECT_EQ(diagnose(collecting(0.05)).cause, Cause::too_few_workers); }

Profile stream(double out_of_data_s) {
  DataLoader loader = images(3, 0.006, 0);
  loader.stream = true;
  Profile profile = simulation::simulate(loader, 1);
  OperatorProfile& op = op_named(profile, "Images");
  for (std::size_t i = 0; i + 1 < op.per_worker.size(); ++i) op.per_worker[i].out_of_data_s = out_of_data_s;
  return profile;
}

TEST(ShardImbalance, WorkersWithoutDataWhileOthersWork) {
  const double elapsed_s = stream(0).elapsed_s;
  const Diagnosis diagnosis = diagnose(stream(0.5 * elapsed_s));
  EXPECT_EQ(diagnosis.cause, Cause::shard_imbalance);
  EXPECT_TRUE(says_anywhere(diagnosis, "equally large"));
}

TEST(ShardImbalance, TheEndOfAnEpochIsNone) {
  EXPECT_NE(diagnose(stream(0.02)).cause, Cause::shard_imbalance);
}

// --- risks ---

const Risk* risk_of(const Diagnosis& diagnosis, RiskKind kind) {
  for (const Risk& risk : diagnosis.risks) {
    if (risk.kind == kind) return &risk;
  }
  return nullptr;
}

TEST(Risks, AHealthyRunHasNone) {
  Profile profile = simulation::simulate(images(2, 0.0005, 0), 1);
  profile.sink.batch_bytes = 1'000'000;
  profile.host.shared_memory = 8'000'000'000;
  EXPECT_TRUE(diagnose(profile).risks.empty());
}

TEST(Risks, SharedMemoryThatWillNotHoldTheBatchesInFlight) {
  Profile profile = simulation::simulate(images(4, 0.0005, 0), 1);
  profile.sink.batch_bytes = 38'000'000;
  profile.host.shared_memory = 64'000'000;
  const Diagnosis diagnosis = diagnose(profile);
  const Risk* risk = risk_of(diagnosis, RiskKind::shared_memory);
  ASSERT_NE(risk, nullptr);
  EXPECT_NE(risk->says.find("8 batches in flight (4 workers x 2)"), std::string::npos) << risk->says;
  EXPECT_DOUBLE_EQ(risk->figures.at("needed_bytes"), 8 * 38e6);
  EXPECT_NE(risk->cure.find("--shm-size"), std::string::npos);
}

TEST(Risks, MemoryThatShrinksUntilItsEnd) {
  Profile profile = simulation::simulate(images(2, 0.0005, 0), 1);
  profile.host.available_memory = 4'000'000'000;
  profile.host.memory_loss_per_s = 1e6;
  const Diagnosis diagnosis = diagnose(profile);
  const Risk* risk = risk_of(diagnosis, RiskKind::memory_growth);
  ASSERT_NE(risk, nullptr);
  EXPECT_NE(risk->says.find("3.6 GB an hour"), std::string::npos) << risk->says;
  EXPECT_DOUBLE_EQ(risk->figures.at("left_s"), 4000);
  profile.host.memory_loss_per_s = 1e3;  // six weeks
  EXPECT_EQ(risk_of(diagnose(profile), RiskKind::memory_growth), nullptr);
}

TEST(Risks, AWorkerThatMakesNoProgress) {
  Profile profile = simulation::simulate(images(2, 0.0005, 0), 1);
  WorkerProfile& worker = op_named(profile, "Images").per_worker.front();
  worker.pid = 4711;
  worker.items = 321;
  worker.current_item_s = 12;
  worker.waits_in = "sleeps in sk_wait_data";
  const Diagnosis diagnosis = diagnose(profile);
  const Risk* risk = risk_of(diagnosis, RiskKind::stuck_worker);
  ASSERT_NE(risk, nullptr);
  EXPECT_NE(risk->says.find("process 4711"), std::string::npos);
  EXPECT_NE(risk->says.find("item 321 for 12.0 s"), std::string::npos) << risk->says;
  EXPECT_NE(risk->says.find("it sleeps in sk_wait_data"), std::string::npos);
}

TEST(Risks, StartUpThatDominates) {
  Profile profile = simulation::simulate(images(2, 0.0005, 0), 1);
  profile.startup.first_batch_s = 30;
  profile.elapsed_s = 40;
  EXPECT_NE(risk_of(diagnose(profile), RiskKind::startup), nullptr);
  profile.elapsed_s = 400;
  EXPECT_EQ(risk_of(diagnose(profile), RiskKind::startup), nullptr);
}

TEST(Risks, CollectionsInTheTrainingLoop) {
  Profile profile = simulation::simulate(images(2, 0.0005, 0), 1);
  profile.sink.gc_s = 0.2 * profile.sink.step_s;
  EXPECT_NE(risk_of(diagnose(profile), RiskKind::gc_pause), nullptr);
}

}  // namespace
}  // namespace headrace::analysis
