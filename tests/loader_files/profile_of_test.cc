#include "headrace/loader_files/profile_of.h"

#include <gtest/gtest.h>

#include "headrace/profile/errors.h"
#include "support/profiler_folder.h"

namespace headrace::loader_files {
namespace {

using test::ProfilerFolderWriter;
using test::slow_map;
using test::WrittenRun;

profile::Profile profile_in(const std::string& folder, int rank = 0) {
  const ProfilerFolder found = find_profiler_files(folder);
  return profile_of(read_rank(*found.rank(rank)));
}

TEST(ProfileOf, OperatorsQueuesAndSteps) {
  const ProfilerFolderWriter folder("profile");
  folder.write_run(slow_map());
  const profile::Profile profile = profile_in(folder.path());
  ASSERT_EQ(profile.operators.size(), 3U);
  EXPECT_EQ(profile.operators[0].name, "GeneratorOp_2");
  EXPECT_EQ(profile.operators[0].kind, profile::OperatorKind::source);
  EXPECT_EQ(profile.operators[1].kind, profile::OperatorKind::map);
  EXPECT_EQ(profile.operators[2].kind, profile::OperatorKind::batch);
  EXPECT_EQ(profile.operators[1].fidelity, profile::Fidelity::sampled);
  EXPECT_EQ(profile.operators[0].states.blocked_out, 1);
  EXPECT_EQ(profile.operators[1].states.busy, 1);
  EXPECT_NEAR(profile.operators[1].demand_s, 0.04, 1e-9);
  EXPECT_EQ(profile.operators[2].states.blocked_in, 1);
  EXPECT_LT(profile.operators[2].demand_s, 0)
      << "never seen with input: nobody knows how long its work takes";
  EXPECT_FALSE(profile.operators[1].items);

  ASSERT_EQ(profile.queues.size(), 3U);
  EXPECT_EQ(profile.queues[0].to, "MapOp_1");
  EXPECT_EQ(profile.queues[0].full_share, 1);
  EXPECT_EQ(profile.queues[0].occupancy.size(), 17U);
  EXPECT_EQ(profile.queues[2].name, "host queue");
  EXPECT_TRUE(profile.queues[2].to_sink);
  EXPECT_FALSE(profile.queues[2].puts);

  EXPECT_NEAR(profile.sink.step_s, 0.04, 1e-9);
  EXPECT_NEAR(profile.sink.getnext_wait.mean_s, 0.03, 1e-9);
  EXPECT_NEAR(profile.sink.compute_s, 0.01, 1e-9);
  EXPECT_NEAR(profile.sink.wait_share, 0.75, 1e-9);
  EXPECT_EQ(profile.sink.wait_resolution_s, 1e-3);
  EXPECT_NEAR(profile.startup.first_batch_s, 0.03, 1e-9);
  EXPECT_EQ(profile.host.cores, 4);
  EXPECT_NEAR(*profile.host.process_cpu_cores, 0.3, 1e-9);
  EXPECT_FALSE(profile.host.gil_share);
}

TEST(ProfileOf, ParametersAreThoseThatTheFilesTell) {
  const ProfilerFolderWriter folder("parameters");
  folder.write_run(slow_map());
  const profile::Profile profile = profile_in(folder.path());
  ASSERT_TRUE(profile.model);
  EXPECT_EQ(profile.model->framework, "mindspore");
  const profile::LoaderParameter* workers = parameter_named(*profile.model, "MapOp_1.num_parallel_workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_EQ(workers->max, 4) << "MindSpore takes no more than there are cores";
  EXPECT_NE(parameter_named(*profile.model, "prefetch_size"), nullptr);
  EXPECT_EQ(parameter_named(*profile.model, "MapOp_1.python_multiprocessing"), nullptr)
      << "it hardly computes, so nothing tells where it runs";
}

TEST(ProfileOf, InlinedOperatorsRunInsideTheOneAboveThem) {
  WrittenRun run = slow_map();
  run.operators[0].children = {5};
  run.operators.push_back({5, "TakeOp", 1, {1}, {}, {}});
  run.operators.push_back({6, "EpochCtrlOp", 1, {0}, {}, {}});
  const ProfilerFolderWriter folder("inlined");
  folder.write_run(run);
  const profile::Profile profile = profile_in(folder.path());
  ASSERT_EQ(profile.operators.size(), 5U);
  EXPECT_EQ(profile.operators[2].name, "TakeOp_5");
  EXPECT_LT(profile.operators[2].demand_s, 0);
  EXPECT_EQ(profile.operators[2].segment, profile.operators[3].segment);
  EXPECT_EQ(profile.queues[1].to, "BatchOp_0") << "the Take between them has no queue";
  EXPECT_TRUE(profile.queues[2].to_sink) << "so has the EpochCtrl above";
  EXPECT_EQ(parameter_named(*profile.model, "TakeOp_5.num_parallel_workers"), nullptr);
}

TEST(ProfileOf, WhatTheSourceLeftAtItsEndIsNoSample) {
  WrittenRun run = slow_map();
  for (std::size_t i = 50; i < 60; ++i)
    run.operators[2].levels[i] = std::max(0, 12 - 4 * static_cast<int>(i - 50));
  const ProfilerFolderWriter folder("dry");
  folder.write_run(run);
  const profile::Profile profile = profile_in(folder.path());
  EXPECT_EQ(profile.queues[0].full_share, 1);
  EXPECT_EQ(profile.operators[1].states.busy, 1);
}

TEST(ProfileOf, CpuTimeSaysThatAnOperatorWorkedBetweenTheSamples) {
  // Half of the samples find no input; it uses as much CPU there as where it had some.
  WrittenRun run = slow_map(2);
  for (std::size_t i = 0; i < 30; ++i) run.operators[2].levels[2 * i] = 0;
  run.operators[1].cpu_percent.assign(60, 94);
  run.process_percent = 100;
  const ProfilerFolderWriter folder("cpu");
  folder.write_run(run);
  const profile::OperatorProfile map = profile_in(folder.path()).operators[1];
  EXPECT_NEAR(map.states.busy, 1, 0.01);
  EXPECT_NEAR(*map.cpu_s / map.busy_s, 0.47, 0.01);
  EXPECT_EQ(map.executor, profile::Executor::thread);
}

TEST(ProfileOf, SinkModeHasAHostQueueAndADataQueue) {
  const ProfilerFolderWriter folder("sink");
  WrittenRun run = slow_map();
  folder.write_pipeline(run);
  std::string batches;
  std::string getnext;
  for (int i = 1; i <= 40; ++i) {
    const std::string n = std::to_string(i);
    const std::string end = std::to_string(1000 + 40 * i);
    batches += "0 1 " + n + " 4 " + end + "\n0 2 " + n + " 40 " + end + "\n0 0 " + n + " 36 " + end +
               "\n1 16 " + n + " 0 " + end + "\n";
    const int start = 5'000'000 + 40'000 * i;
    getnext +=
        "GetNext_dequeue_wait " + std::to_string(start) + " " + std::to_string(start + 30'000) + " 0\n";
  }
  folder.write("device_queue_profiling_0.txt", batches);
  folder.write("minddata_aicpu_0.txt", getnext);
  const profile::Profile profile = profile_in(folder.path());
  ASSERT_EQ(profile.operators.size(), 4U);
  EXPECT_EQ(profile.operators[3].kind, profile::OperatorKind::transfer);
  EXPECT_NEAR(profile.operators[3].demand_s, 0.004, 1e-9);
  ASSERT_EQ(profile.queues.size(), 4U);
  EXPECT_EQ(profile.queues[2].name, "host queue");
  EXPECT_FALSE(profile.queues[2].to_sink);
  EXPECT_EQ(profile.queues[3].name, "data queue");
  EXPECT_TRUE(profile.queues[3].to_sink);
  EXPECT_EQ(profile.queues[3].empty_share, 1);
  EXPECT_NEAR(profile.sink.step_s, 0.04, 1e-9) << "the device's";
  EXPECT_NEAR(profile.sink.getnext_wait.mean_s, 0.03, 1e-9);
  EXPECT_NEAR(profile.sink.starved_share, 0.75, 1e-9);
  ASSERT_EQ(profile.settings.size(), 1U);
  EXPECT_EQ(profile.settings[0].value, "True");
}

TEST(ProfileOf, WithoutBatchesThereAreNoSteps) {
  const ProfilerFolderWriter folder("no-batches");
  folder.write_pipeline(slow_map());
  const profile::Profile profile = profile_in(folder.path());
  EXPECT_EQ(profile.sink.steps, 0U);
  EXPECT_EQ(profile.queues.size(), 3U);
  EXPECT_FALSE(profile.notes.empty());
}

TEST(ProfileOf, DamagedFilesAreNotedAndTheOthersRead) {
  const ProfilerFolderWriter folder("damaged");
  folder.write_run(slow_map());
  folder.write("minddata_cpu_utilization_0.json", "{\"time_stamp\":[1,2");
  const profile::Profile profile = profile_in(folder.path());
  EXPECT_EQ(profile.operators.size(), 3U);
  EXPECT_EQ(profile.host.cores, 0);
  ASSERT_FALSE(profile.notes.empty());
  EXPECT_NE(profile.notes[0].find("minddata_cpu_utilization_0.json could not be read"), std::string::npos);
  EXPECT_EQ(profile.notes[0].find('/'), std::string::npos) << "reports hold no paths";
}

TEST(ProfilerFolder, FindsRanksInSubfoldersToo) {
  const ProfilerFolderWriter folder("ranks");
  folder.write("rank_0/profiler/dataset_iterator_profiling_0.txt", "1 64 1 3\n");
  folder.write("rank_1/profiler/dataset_iterator_profiling_1.txt", "1 64 1 3\n");
  folder.write("rank_1/notes_1.txt", "");
  const ProfilerFolder found = find_profiler_files(folder.path());
  ASSERT_EQ(found.ranks.size(), 2U);
  EXPECT_EQ(found.ranks[1].rank, 1);
  EXPECT_TRUE(find_profiler_files(folder.path() + "/rank_1/profiler").rank(1) != nullptr);
  EXPECT_THROW(find_profiler_files(folder.path() + "/none"), Error);
}

TEST(RankFiles, AFolderOfDamagedFilesIsRefusedWithTheFirst) {
  const ProfilerFolderWriter folder("all-damaged");
  folder.write("pipeline_profiling_0.json", "");
  EXPECT_THROW(read_rank(find_profiler_files(folder.path()).ranks.at(0)), FormatError);
}

}  // namespace
}  // namespace headrace::loader_files
