#include "headrace/analysis/second_opinions/second_opinions.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headrace/analysis/second_opinions/autotune.h"
#include "headrace/analysis/second_opinions/bottleneck_analyzer.h"
#include "headrace/analysis/second_opinions/mindinsight.h"
#include "headrace/analysis/second_opinions/profile_of_folder.h"
#include "support/profiler_folder.h"
#include "trace/conformance_data.h"

namespace headrace::analysis {
namespace {

using test::all;
using test::ProfilerFolderWriter;
using test::slow_map;
using test::WrittenRun;

loader_files::RankFiles files_in(const std::string& folder, int rank = 0) {
  return loader_files::read_rank(*loader_files::find_profiler_files(folder).rank(rank));
}

loader_files::PipelineFile pipeline_of(const WrittenRun& run) {
  const ProfilerFolderWriter folder("usage");
  folder.write_pipeline(run);
  return *files_in(folder.path()).pipeline;
}

const profile::SecondOpinion& opinion(const profile::Profile& profile, const std::string& rule) {
  for (const profile::SecondOpinion& each : profile.second_opinions) {
    if (each.rule == rule) return each;
  }
  static const profile::SecondOpinion kNone;
  ADD_FAILURE() << "no opinion by " << rule;
  return kNone;
}

TEST(UsageRule, NamesWhatBacksUpAndLowLeaves) {
  WrittenRun run = slow_map();
  EXPECT_EQ(usage_bottlenecks(usage_table(pipeline_of(run))), (std::vector<std::string>{"MapOp_1"}));
  run.operators[2].levels = all(8);
  const auto table = usage_table(pipeline_of(run));
  EXPECT_EQ(usage_bottlenecks(table), (std::vector<std::string>{"MapOp_1", "GeneratorOp_2"}));
  const std::string advice = usage_advice(table, usage_bottlenecks(table));
  EXPECT_TRUE(advice.starts_with("The GeneratorOp_2/MapOp_1 operator in the pipeline")) << advice;
}

TEST(UsageRule, TheFirstOperatorAloneWhereAllQueuesAreFull) {
  WrittenRun run = slow_map();
  run.operators[1].levels = all(13);
  const auto table = usage_table(pipeline_of(run));
  EXPECT_EQ(usage_bottlenecks(table), (std::vector<std::string>{"BatchOp_0"}));
  EXPECT_EQ(usage_advice(table, usage_bottlenecks(table)), "");
}

TEST(UsageRule, InputsOfAnOperatorWithoutQueueGoToTheOneAbove) {
  const WrittenRun run{.operators = {{0, "Batch", 4, {1}, {}, {}},
                                     {1, "Shuffle", 1, {2, 4}, all(20), {}, 64},
                                     {2, "TFReader", 4, {}, all(20), {}, 64},
                                     {3, "TFReader", 4, {}, all(20), {}, 64},
                                     {4, "TFReader", 4, {3}, {}, {}}}};
  const auto table = usage_table(pipeline_of(run));
  ASSERT_EQ(table.size(), 4U);
  EXPECT_EQ(table[1].children, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(usage_bottlenecks(table), (std::vector<std::string>{"TFReader_2", "TFReader_3"}));
}

TEST(QueueSummaryRule, OneEmptyDataQueueIsTransmission) {
  loader_files::RankFiles files;
  files.device_queue.emplace().batches.resize(10);
  for (auto& batch : files.device_queue->batches) batch.level = 5;
  files.getnext.emplace().calls.resize(10);
  for (auto& call : files.getnext->calls) call.level = 1;
  EXPECT_EQ(queue_summary(files).warns_of, QueueStatus::device_queue_warning);
  files.getnext->calls[3].level = 0;
  EXPECT_EQ(queue_summary(files).warns_of, QueueStatus::data_transmission);
  for (std::size_t i = 0; i < 3; ++i) files.device_queue->batches[i].level = 0;
  EXPECT_EQ(queue_summary(files).warns_of, QueueStatus::data_transmission) << "30 % is not more than 30 %";
  files.device_queue->batches[3].level = 0;
  EXPECT_EQ(queue_summary(files).warns_of, QueueStatus::data_process);
}

TEST(AutoTuneRule, OneRound) {
  const ProfilerFolderWriter folder("autotune");
  folder.write_run(slow_map());
  const AutoTuneRound round = autotune_round(files_in(folder.path()));
  EXPECT_TRUE(round.is_bottleneck);
  ASSERT_EQ(round.requests.size(), 2U);
  EXPECT_EQ(round.requests[0].text(), "MapOp(ID:1) num_parallel_workers 1 -> 3");
  EXPECT_EQ(round.requests[1].text(), "BatchOp(ID:0) prefetch_size 16 -> 20");
}

TEST(SecondOpinions, AreRowsWithTheReasonWhereTheyAreMisled) {
  const ProfilerFolderWriter folder("opinions");
  folder.write_run(slow_map());
  const profile::Profile profile = profile_of_folder(folder.path(), 0);
  EXPECT_EQ(opinion(profile, "operator queues").op, "MapOp_1");
  EXPECT_EQ(opinion(profile, "operator queues").misled, "");
  EXPECT_EQ(opinion(profile, "BottleneckAnalyzer").op, "BatchOp_0");
  EXPECT_NE(opinion(profile, "BottleneckAnalyzer").misled.find("BatchOp_0 waits for input"),
            std::string::npos);
  EXPECT_EQ(opinion(profile, "AutoTune, one round").misled, "");
}

TEST(SecondOpinions, AreMisledWhereThreadsShareALock) {
  WrittenRun run = slow_map(2);
  run.operators[1].cpu_percent.assign(60, 94);
  run.process_percent = 100;
  const ProfilerFolderWriter folder("lock");
  folder.write_run(run);
  const profile::Profile profile = profile_of_folder(folder.path(), 0);
  const profile::SecondOpinion& tuned = opinion(profile, "AutoTune, one round");
  EXPECT_EQ(tuned.op, "MapOp_1");
  EXPECT_NE(tuned.misled.find("share one interpreter lock"), std::string::npos) << tuned.misled;
}

TEST(SecondOpinions, AreMisledByFewSamples) {
  WrittenRun run = slow_map();
  for (test::WrittenOperator& op : run.operators) op.levels.resize(4);
  run.tick_ms = 1000;
  const ProfilerFolderWriter folder("few-samples");
  folder.write_run(run);
  const profile::Profile profile = profile_of_folder(folder.path(), 0);
  EXPECT_NE(opinion(profile, "operator queues").misled.find("a shorter monitor sampling interval"),
            std::string::npos);
}

/// The tables that the sample's own tool made of the sample.
TEST(UsageRule, OnTheSampleTables) {
  const std::string folder = trace::conformance_file("mindspore/pipeline");
  HEADRACE_NEEDS_FILE(folder);
  const auto named = [&](int rank) {
    return usage_bottlenecks(usage_table(*files_in(folder, rank).pipeline));
  };
  EXPECT_EQ(named(0), (std::vector<std::string>{"Shuffle_4", "TFReader_2", "TFReader_3"}));
  EXPECT_EQ(named(2), (std::vector<std::string>{"Batch_0"}));
}

TEST(SecondOpinions, AreMisledBySamplesOfTheEnd) {
  // 40 % of the samples are of the time after the source had run dry.
  WrittenRun run = slow_map();
  for (std::size_t i = 34; i < 60; ++i) run.operators[2].levels[i] = 0;
  const ProfilerFolderWriter folder("dry-end");
  folder.write_run(run);
  const profile::Profile profile = profile_of_folder(folder.path(), 0);
  const profile::SecondOpinion& usage = opinion(profile, "operator queues");
  EXPECT_EQ(usage.op, "MapOp_1, GeneratorOp_2");
  EXPECT_NE(usage.misled.find("without them it names MapOp_1"), std::string::npos) << usage.misled;
}

/// What the tools themselves wrote of the recorded runs.
class ToolsSaid : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = trace::conformance_file(std::string("mindspore/cpu_runs/") + GetParam());
    HEADRACE_NEEDS_FILE(folder_);
    files_ = files_in(folder_);
    std::ifstream labels(trace::conformance_file("mindspore/cpu_runs/labels.json"));
    peers_ = nlohmann::json::parse(labels)[GetParam()]["peers"];
  }

  std::string folder_;
  loader_files::RankFiles files_;
  nlohmann::json peers_;
};

TEST_P(ToolsSaid, TheSummaryOfMindSpore) {
  if (IsSkipped()) return;
  std::ifstream file(folder_ + "/minddata_pipeline_summary_0.json");
  const nlohmann::json wrote = nlohmann::json::parse(file);
  const PipelineSummary summary = pipeline_summary(files_);
  EXPECT_EQ(nlohmann::json(summary.pipeline_ops), wrote["pipeline_ops"]);
  EXPECT_EQ(nlohmann::json(summary.op_names), wrote["op_names"]);
  EXPECT_EQ(nlohmann::json(summary.op_ids), wrote["op_ids"]);
  EXPECT_EQ(nlohmann::json(summary.num_workers), wrote["num_workers"]);
  EXPECT_EQ(nlohmann::json(summary.queue_average_size), wrote["queue_average_size"]);
  EXPECT_EQ(nlohmann::json(summary.queue_utilization_pct), wrote["queue_utilization_pct"]);
  EXPECT_EQ(nlohmann::json(summary.queue_empty_freq_pct), wrote["queue_empty_freq_pct"]);
  EXPECT_EQ(nlohmann::json(summary.children_ids), wrote["children_ids"]);
  EXPECT_EQ(nlohmann::json(summary.parent_id), wrote["parent_id"]);
  EXPECT_EQ(nlohmann::json(summary.avg_cpu_pct), wrote["avg_cpu_pct"]);
  EXPECT_EQ(nlohmann::json(summary.avg_cpu_pct_per_worker), wrote["avg_cpu_pct_per_worker"]);
  EXPECT_EQ(*summary.per_batch_time, wrote["per_batch_time"][0].get<double>());
  EXPECT_EQ(*summary.per_pipeline_time, wrote["per_pipeline_time"][0].get<double>());
  EXPECT_EQ(*summary.per_push_queue_time, wrote["per_push_queue_time"][0].get<double>());
  const auto texts = [&](const char* key) { return wrote.value(key, std::vector<std::string>{}); };
  EXPECT_EQ(summary.cpu_analysis_details, texts("cpu_analysis_details"));
  EXPECT_EQ(summary.queue_analysis_details, texts("queue_analysis_details"));
  const auto one = [](const std::string& text) {
    return text.empty() ? std::vector<std::string>{} : std::vector<std::string>{text};
  };
  EXPECT_EQ(one(summary.bottleneck_warning), texts("bottleneck_warning"));
  EXPECT_EQ(one(summary.bottleneck_suggestion), texts("bottleneck_suggestion"));
}

TEST_P(ToolsSaid, TheRuleOfMindInsight) {
  if (IsSkipped()) return;
  EXPECT_EQ(nlohmann::json(usage_bottlenecks(usage_table(*files_.pipeline))), peers_["mindinsight_rule"]);
}

/// AutoTune ran by itself, not on these samples: its first round, with ids that are one higher.
TEST_P(ToolsSaid, TheFirstRoundOfAutoTune) {
  if (IsSkipped()) return;
  std::vector<std::string> logged;
  std::ifstream log(folder_ + "/autotune_log.txt");
  int rounds = 0;
  for (std::string line; std::getline(log, line);) {
    rounds += line.find("Run Dataset AutoTune at epoch") != std::string::npos ? 1 : 0;
    const auto between = [&](const std::string& before, char after) {
      const std::size_t at = line.find(before);
      if (at == std::string::npos) return std::string();
      const std::size_t begin = at + before.size();
      return line.substr(begin, line.find(after, begin) - begin);
    };
    const std::string parameter = between("request to change \"", '"');
    if (rounds != 1 || parameter.empty()) continue;
    const std::string type = between("of Operator: ", '(');
    const int id = std::stoi(between("(ID:", ')')) - 1;
    logged.push_back(type + "(ID:" + std::to_string(id) + ") " + parameter + " " +
                     between("old value: [", ']') + " -> " + between("new value: [", ']'));
  }
  std::vector<std::string> requests;
  for (const AutoTuneRequest& each : autotune_round(files_).requests) requests.push_back(each.text());
  EXPECT_EQ(requests, logged);
}

INSTANTIATE_TEST_SUITE_P(CpuRuns, ToolsSaid,
                         testing::Values("a_map1w", "b_slowgen", "d_slowconsumer", "f_cppmap", "h_gil2",
                                         "k_firstmap"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headrace::analysis
