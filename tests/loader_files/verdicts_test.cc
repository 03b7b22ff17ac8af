// Verdicts on folders of another profiler: by the same rules as on any loader, right and less sure.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headrace/analysis/second_opinions/profile_of_folder.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/what_if/what_if.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/profile_json.h"
#include "support/profiler_folder.h"
#include "trace/conformance_data.h"

namespace headrace::analysis {
namespace {

using test::all;
using test::ProfilerFolderWriter;
using test::slow_map;
using test::WrittenRun;

/// As a report has it: through JSON.
Diagnosis verdict_on(const std::string& folder) {
  return diagnose(profile::profile_from_json(profile::profile_to_json(profile_of_folder(folder, 0))));
}

Diagnosis verdict_on(const WrittenRun& run, const std::string& name) {
  const ProfilerFolderWriter folder(name);
  folder.write_run(run);
  return verdict_on(folder.path());
}

TEST(FolderVerdict, ASlowMapNeedsWorkers) {
  const Diagnosis diagnosis = verdict_on(slow_map(), "slow-map");
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.op, "MapOp_1");
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
  EXPECT_LT(diagnosis.confidence, 0.9) << "samples say less than busy times";
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice[0].parameter, "MapOp_1.num_parallel_workers");
  ASSERT_TRUE(diagnosis.advice[0].predicted_step_s);
  EXPECT_LT(*diagnosis.advice[0].predicted_step_s, 0.025);
  EXPECT_NEAR(*diagnosis.advice[0].high, 0.04, 1e-3)
      << "the batch operator never had input at a sample: it may be as slow";
}

TEST(FolderVerdict, NoMoreWorkersThanCores) {
  WrittenRun run = slow_map();
  run.cores = 2;
  const Diagnosis diagnosis = verdict_on(run, "cores");
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice[0].to, profile::ParameterValue(std::int64_t{2}));
  for (const Advice& advice : diagnosis.advice) {
    if (const auto* to = std::get_if<std::int64_t>(&advice.to)) {
      EXPECT_LE(*to, 2) << advice.parameter;
    }
  }
}

TEST(FolderVerdict, ASlowBatchAtTheRootIsNamed) {
  WrittenRun run = slow_map();
  run.operators[1].levels = all(16);
  const Diagnosis diagnosis = verdict_on(run, "slow-batch");
  EXPECT_EQ(diagnosis.op, "BatchOp_0");
}

TEST(FolderVerdict, ABatchOfEightThatWaitsForRowsIsNotNamed) {
  // Between two batches up to seven rows wait for the eighth.
  WrittenRun run = slow_map();
  for (std::size_t i = 0; i < 60; ++i) run.operators[1].levels[i] = i % 8 == 0 ? 1 : 0;
  const Diagnosis diagnosis = verdict_on(run, "gathers");
  EXPECT_EQ(diagnosis.op, "MapOp_1");
}

TEST(FolderVerdict, AHealthyRunWithABatchOfEightIsHealthy) {
  // Every batch drains half of the queue before it, which is no sign of anything.
  WrittenRun run = slow_map();
  run.wait_ms = 0;
  run.operators[0].levels = all(15);
  for (std::size_t i = 0; i < 60; ++i) run.operators[1].levels[i] = 4 + static_cast<int>(i * 5 % 12);
  const Diagnosis diagnosis = verdict_on(run, "healthy-ratio");
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_TRUE(diagnosis.advice.empty());
}

TEST(FolderVerdict, OfTwoInputsTheEmptyOneIsWaitedFor) {
  const WrittenRun run{.operators = {{0, "BatchOp", 1, {1}, all(0), {}},
                                     {1, "ZipOp", 1, {2, 3}, {}, {}},
                                     {2, "MapOp", 1, {4}, all(0), {}},
                                     {3, "GeneratorOp", 1, {}, all(16), {}},
                                     {4, "GeneratorOp", 1, {}, all(16), {}}}};
  const Diagnosis diagnosis = verdict_on(run, "zip");
  EXPECT_EQ(diagnosis.op, "MapOp_2");
}

TEST(FolderVerdict, ASlowGeneratorIsNamedWithWhatItsSourceMustDo) {
  WrittenRun run = slow_map();
  run.operators[2].levels = all(0);
  const Diagnosis diagnosis = verdict_on(run, "generator");
  EXPECT_EQ(diagnosis.op, "GeneratorOp_2");
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_NE(diagnosis.advice[0].text.find("__getitem__"), std::string::npos);
}

TEST(FolderVerdict, AShuffleGetsNoWorkers) {
  WrittenRun run = slow_map();
  run.operators[1].type = "ShuffleOp";
  const Diagnosis diagnosis = verdict_on(run, "shuffle");
  EXPECT_EQ(diagnosis.op, "ShuffleOp_1");
  for (const Advice& advice : diagnosis.advice)
    EXPECT_EQ(advice.parameter.find("num_parallel_workers"), std::string::npos) << advice.parameter;
}

TEST(FolderVerdict, AComputingMapIsToldOfTheInterpreterLock) {
  // One thread has nobody to share the lock with; a second one would.
  WrittenRun run = slow_map(1);
  run.operators[1].cpu_percent.assign(60, 95);
  run.process_percent = 100;
  run.idle_percent = 70;
  const Diagnosis diagnosis = verdict_on(run, "computes");
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_NE(diagnosis.advice[0].text.find("python_multiprocessing=True"), std::string::npos)
      << diagnosis.advice[0].text;
}

TEST(FolderVerdict, ThreadsOnOneInterpreterLockGetProcesses) {
  WrittenRun run = slow_map(2);
  run.operators[1].cpu_percent.assign(60, 94);
  run.process_percent = 100;
  run.idle_percent = 60;
  const Diagnosis diagnosis = verdict_on(run, "lock");
  EXPECT_EQ(diagnosis.cause, Cause::gil_contention);
  EXPECT_EQ(diagnosis.op, "MapOp_1");
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice[0].parameter, "MapOp_1.python_multiprocessing");
  EXPECT_EQ(diagnosis.advice[0].to, profile::ParameterValue(true));
}

/// Batches are ready, and fetching one takes 8 ms of 28 ms.
WrittenRun slow_fetches() {
  WrittenRun run = slow_map();
  for (std::size_t i = 0; i < 3; ++i) run.operators[i].levels = all(16);
  run.step_ms = 28;
  run.wait_ms = 8;
  run.left = 15;
  return run;
}

constexpr const char* kSteps =
    "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n";

/// Steps of 28 ms; forward begins after `gap_ms`.
void write_steps(const ProfilerFolderWriter& folder, int gap_ms) {
  std::string text = kSteps;
  for (std::int64_t i = 1; i <= 20; ++i) {
    const std::int64_t start = 2'800'000 * i;
    const std::int64_t forward = start + 100'000 * gap_ms;
    const std::int64_t end = start + 2'800'000;
    text += std::to_string(i) + "," + std::to_string(start) + "," + std::to_string(end) + ",2800000," +
            std::to_string(forward) + "," + std::to_string(end) + "," + std::to_string(100'000 * gap_ms) +
            "," + std::to_string(end - forward) + ",0\n";
  }
  folder.write("step_trace_raw_0_detail_time.csv", text);
}

const Advice* advice_on(const Diagnosis& diagnosis, std::string_view parameter) {
  for (const Advice& each : diagnosis.advice) {
    if (each.parameter == parameter) return &each;
  }
  return nullptr;
}

TEST(FolderVerdict, SlowFetchesOfReadyBatchesGetSinkMode) {
  const ProfilerFolderWriter folder("slow-fetches");
  folder.write_run(slow_fetches());
  write_steps(folder, 9);
  const Diagnosis diagnosis = verdict_on(folder.path());
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.cause, Cause::handoff);
  const Advice* sink_mode = advice_on(diagnosis, "dataset_sink_mode");
  ASSERT_NE(sink_mode, nullptr);
  EXPECT_EQ(sink_mode->to, profile::ParameterValue(true));
  EXPECT_FALSE(sink_mode->predicted_step_s);
  EXPECT_NE(sink_mode->text.find("at most 8.00 ms of 28.0 ms"), std::string::npos) << sink_mode->text;
  EXPECT_NE(sink_mode->text.find("model.train"), std::string::npos) << sink_mode->text;
}

TEST(FolderVerdict, SinkModeIsNoAdviceWhereNoDeviceRan) {
  const Diagnosis diagnosis = verdict_on(slow_fetches(), "no-device");
  EXPECT_EQ(diagnosis.cause, Cause::handoff);
  EXPECT_EQ(advice_on(diagnosis, "dataset_sink_mode"), nullptr) << "on a CPU it changes nothing";
}

TEST(FolderVerdict, SinkModeIsNoAdviceWhereBatchesAreLate) {
  const ProfilerFolderWriter folder("late");
  folder.write_run(slow_map());
  write_steps(folder, 20);
  const Diagnosis diagnosis = verdict_on(folder.path());
  EXPECT_EQ(diagnosis.op, "MapOp_1");
  EXPECT_EQ(advice_on(diagnosis, "dataset_sink_mode"), nullptr);
}

TEST(FolderVerdict, ADeviceThatWaitsForAHealthyLoopGetsSinkMode) {
  WrittenRun run = slow_fetches();
  run.step_ms = 28;
  run.wait_ms = 0;
  const ProfilerFolderWriter folder("gap");
  folder.write_run(run);
  write_steps(folder, 6);
  const Diagnosis diagnosis = verdict_on(folder.path());
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  const Advice* sink_mode = advice_on(diagnosis, "dataset_sink_mode");
  ASSERT_NE(sink_mode, nullptr);
  EXPECT_NE(sink_mode->text.find("at most 6.00 ms of 28.0 ms"), std::string::npos) << sink_mode->text;
  write_steps(folder, 2);
  EXPECT_EQ(advice_on(verdict_on(folder.path()), "dataset_sink_mode"), nullptr) << "a gap of 7 % is usual";
}

TEST(FolderVerdict, WithoutBatchesItAbstainsAndSaysWhatTheQueuesSay) {
  const ProfilerFolderWriter folder("abstains");
  folder.write_pipeline(slow_map());
  const Diagnosis diagnosis = verdict_on(folder.path());
  EXPECT_EQ(diagnosis.kind, VerdictKind::undetermined);
  EXPECT_NE(diagnosis.reason.find("nothing tells whether it waits"), std::string::npos) << diagnosis.reason;
  ASSERT_EQ(diagnosis.evidence.size(), 1U);
  EXPECT_NE(diagnosis.evidence[0].says.find("MapOp_1"), std::string::npos);
}

TEST(FolderVerdict, WithFewSamplesNoOperatorIsNamed) {
  WrittenRun run = slow_map();
  for (test::WrittenOperator& op : run.operators) op.levels.resize(4);
  run.tick_ms = 1000;
  const Diagnosis diagnosis = verdict_on(run, "few");
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_FALSE(diagnosis.op);
  EXPECT_FALSE(diagnosis.reason.empty());
}

TEST(FolderVerdict, OtherRanksAreComparedAndShareTheCores) {
  const ProfilerFolderWriter folder("two-ranks");
  folder.write_run(slow_map(), 0);
  folder.write_run(slow_map(), 1);
  EXPECT_EQ(ranks_in_folder(folder.path()), (std::vector<int>{0, 1}));
  const profile::Profile profile = profile_of_folder(folder.path(), 1);
  EXPECT_EQ(profile.rank, 1);
  ASSERT_EQ(profile.ranks.size(), 1U);
  EXPECT_EQ(profile.ranks[0].op, "MapOp_1");
  EXPECT_EQ(parameter_named(*profile.model, "MapOp_1.num_parallel_workers")->max, 2);
  EXPECT_THROW(profile_of_folder(folder.path(), 2), Error);
}

TEST(FolderVerdict, WhatIfTakesItsParameters) {
  const ProfilerFolderWriter folder("what-if");
  folder.write_run(slow_map());
  const profile::Profile profile = profile_of_folder(folder.path(), 0);
  const WhatIf more = what_if(profile, {{"MapOp_1.num_parallel_workers", "2"}});
  ASSERT_TRUE(more.known) << more.reason;
  EXPECT_NEAR(more.step_s, 0.02, 0.002);
  EXPECT_GE(more.high_s, 0.039);
  EXPECT_TRUE(what_if(profile, {{"prefetch_size", "32"}}).known);
  EXPECT_THROW(what_if(profile, {{"MapOp_1.num_parallel_workers", "5"}}), UsageError);
}

/// The recorded runs whose bottleneck was proven by halving each operator's cost.
class LabelledRun : public testing::TestWithParam<const char*> {};

TEST_P(LabelledRun, IsJudgedRight) {
  const std::string runs = trace::conformance_file("mindspore/cpu_runs");
  HEADRACE_NEEDS_FILE(runs);
  std::ifstream labels(runs + "/labels.json");
  const nlohmann::json label = nlohmann::json::parse(labels)[GetParam()];
  const profile::Profile profile = profile_of_folder(runs + "/" + GetParam(), 0);
  const Diagnosis diagnosis = diagnose(profile);
  const nlohmann::json& truth = label["true_op_id_in_profile"];
  if (truth.is_null()) {
    EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
    EXPECT_FALSE(diagnosis.op);
  } else {
    EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
    ASSERT_TRUE(diagnosis.op);
    EXPECT_TRUE(diagnosis.op->ends_with("_" + std::to_string(truth.get<int>()))) << *diagnosis.op;
    EXPECT_GT(diagnosis.confidence, 0.5);
    EXPECT_LT(diagnosis.confidence, 0.9);
  }
  const double measured_s = label["measured"]["with_profiler_50ms"]["iter_ms"].get<double>() / 1e3;
  EXPECT_NEAR(profile.sink.step_s, measured_s, 0.02 * measured_s);
}

INSTANTIATE_TEST_SUITE_P(CpuRuns, LabelledRun,
                         testing::Values("a_map1w", "b_slowgen", "d_slowconsumer", "f_cppmap", "h_gil2",
                                         "k_firstmap"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LabelledRuns, ThreadsOnOneLockAreTold) {
  const std::string run = trace::conformance_file("mindspore/cpu_runs/h_gil2");
  HEADRACE_NEEDS_FILE(run);
  EXPECT_EQ(diagnose(profile_of_folder(run, 0)).cause, Cause::gil_contention);
}

/// What halving the operator's cost was measured to give must be inside the interval of twice the workers.
TEST(LabelledRuns, PredictionsContainWhatWasMeasured) {
  const std::string runs = trace::conformance_file("mindspore/cpu_runs");
  HEADRACE_NEEDS_FILE(runs);
  std::ifstream labels(runs + "/labels.json");
  const nlohmann::json all_labels = nlohmann::json::parse(labels);
  for (const auto& [run, op, cost] :
       {std::tuple("a_map1w", "MapOp_1", "map"), std::tuple("b_slowgen", "GeneratorOp_2", "src"),
        std::tuple("k_firstmap", "MapOp_3", "mapA")}) {
    const profile::Profile profile = profile_of_folder(runs + "/" + run, 0);
    const WhatIf faster = what_if(profile, {{std::string(op) + ".speedup", "2"}});
    ASSERT_TRUE(faster.known) << faster.reason;
    const double measured_s =
        all_labels[run]["counterfactual_iter_ms_when_op_cost_halved"][cost].get<double>() / 1e3;
    EXPECT_LE(faster.low_s, measured_s) << run;
    EXPECT_GE(faster.high_s, measured_s) << run;
  }
}

}  // namespace
}  // namespace headrace::analysis
