// Files of parallel jobs, of the host profiler, and the raw records of GetNext.
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/loader_files/collectives_file.h"
#include "headrace/loader_files/file_table.h"
#include "headrace/loader_files/parallel_steps_file.h"
#include "headrace/loader_files/profile_of.h"
#include "headrace/loader_files/profiler_timeline.h"
#include "headrace/profile/errors.h"
#include "loader_files/read_columns.h"
#include "support/profiler_folder.h"
#include "trace/conformance_data.h"

namespace headrace::loader_files {
namespace {

using test::ProfilerFolderWriter;

constexpr const char* kHeading =
    "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n";

TEST(CollectivesFile, StepsLinksAndOperators) {
  const std::string text =
      std::string(kHeading) +
      R"(1,2,6,"{""1-0"": {""SDMA"": [2.0, 500.0, 900000.0], ""RDMA"": [1.0, 100.0, 100000.0, 0.5]}}",)"
      R"("{""stream_41_0_AllReduce-op1"": [""1"", 1.5, 4.0, {""1-0"": {""SDMA"": [1.5, 400.0, 266666.0]}}]}")"
      "\n-,2,6,{},{}\n";
  const CollectivesFile file = read_collectives(text, "c");
  ASSERT_EQ(file.steps.size(), 1U);
  ASSERT_TRUE(file.average);
  EXPECT_NEAR(file.steps[0].cost.communication_s, 2e-3, 1e-12);
  EXPECT_NEAR(file.steps[0].cost.wait_s, 6e-3, 1e-12);
  ASSERT_EQ(file.steps[0].cost.links.size(), 2U);
  const LinkUse& link = file.steps[0].cost.links[0];
  EXPECT_EQ(link.source, 1);
  EXPECT_EQ(link.destination, 0);
  EXPECT_EQ(link.type, "SDMA");
  EXPECT_EQ(link.bytes, 500e3);
  EXPECT_NEAR(link.bytes_per_s(), 250e6, 1e-3) << "bytes / time, not the file's sum over operators";
  EXPECT_FALSE(link.wait_s);
  EXPECT_NEAR(*file.steps[0].cost.links[1].wait_s, 0.5e-3, 1e-12);
  ASSERT_EQ(file.steps[0].operators.size(), 1U);
  EXPECT_EQ(file.steps[0].operators[0].name, "stream_41_0_AllReduce-op1");
  EXPECT_NEAR(file.steps[0].operators[0].cost.wait_s, 4e-3, 1e-12);
}

TEST(CollectivesFile, NewerVersionsCountMicroseconds) {
  // 500 KB in 2 ms are 250 KB/ms: 0.25 GB/s.
  const CollectivesFile file = read_collectives(
      std::string(kHeading) + R"(1,2000,6000,"{""1-0"": {""SDMA"": [2.0, 500.0, 0.25]}}",{})", "c");
  EXPECT_NEAR(file.steps[0].cost.communication_s, 2e-3, 1e-12);
  EXPECT_NEAR(file.steps[0].cost.links[0].bytes_per_s(), 250e6, 1e-3);
}

TEST(CollectivesFile, DamagedRowsAreNoted) {
  const CollectivesFile file = read_collectives(
      std::string(kHeading) + "1,2,6,\"{\",{}\n2,x,6,{},{}\n3,1,1,\"{\"\"a\"\": 5}\",\"[]\"\n", "c");
  ASSERT_EQ(file.steps.size(), 2U);
  EXPECT_NEAR(file.steps[0].cost.wait_s, 6e-3, 1e-12) << "what can be read of the row";
  EXPECT_EQ(file.notes.size(), 2U);
  EXPECT_THROW(read_collectives("a,b\n1,2\n", "c"), FormatError);
  EXPECT_THROW(read_collectives(kHeading, "c"), FormatError);
}

TEST(ParallelStepsFile, ItsLastRowIsTheAverage) {
  const ParallelStepsFile file =
      read_parallel_steps("computation_time,communication_alone_time\n9,9\n1,10\n3,14\n2,12\n", "p");
  EXPECT_EQ(file.steps.size(), 3U);
  ASSERT_TRUE(file.average);
  EXPECT_EQ((*file.average)[1], 12);
  EXPECT_FALSE(read_parallel_steps("computation_time\n1\n", "p").average);
  EXPECT_THROW(read_parallel_steps("", "p"), FormatError);
}

TEST(ParallelStepsFile, ItsNameTellsTheStage) {
  const auto place = parallel_place("ascend_cluster_analyse_pipeline-parallel_2_4_3.csv");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->mode, "pipeline-parallel");
  EXPECT_EQ(place->stages, 2);
  EXPECT_EQ(place->ranks, 4);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->stage(), 2);
  EXPECT_FALSE(parallel_place("ascend_cluster_analyse_2_4.csv"));
  EXPECT_FALSE(parallel_place("hccl_raw_0.csv"));
  EXPECT_EQ(parallel_place("gpu_cluster_analyse_data-parallel_0_0_7.csv")->stage(), 8);
}

TEST(FileTables, OfAParallelJob) {
  const ProfilerFolderWriter folder("parallel");
  for (const std::string rank : {"0", "1"}) {
    folder.write("ascend_cluster_analyse_pipeline-parallel_2_2_" + rank + ".csv",
                 "computation_time,communication_alone_time,stage_time\n5,5,10\n4,6,9\n");
    folder.write("hccl_raw_" + rank + ".csv", std::string(kHeading) + "1,1,3,{},{}\n");
  }
  folder.write("flops_summary_1.json", R"({"FLOPS": 2.5})");
  const FileTable steps = table_in(folder, "parallel_steps", 1);
  EXPECT_EQ(column<std::int64_t>(steps, "step"), (std::vector<std::int64_t>{1}));
  EXPECT_NEAR(column<double>(steps, "stage_s")[0], 10e-3, 1e-12);
  EXPECT_NEAR(column<double>(table_in(folder, "communication"), "wait_share")[0], 0.75, 1e-12);
  const ProfilerFolder found = find_profiler_files(folder.path());
  ASSERT_TRUE(has_ranks_table(found));
  const FileTable ranks = ranks_table(found);
  EXPECT_EQ(column<std::int64_t>(ranks, "rank"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(column<double>(ranks, "stage"), (std::vector<double>{1, 2}));
  EXPECT_NEAR(column<double>(ranks, "computation_s")[0], 4e-3, 1e-12) << "the file's average";
  EXPECT_TRUE(std::isnan(column<double>(ranks, "gflops")[0]));
  EXPECT_EQ(column<double>(ranks, "gflops")[1], 2.5);
  for (const FileColumn& each : ranks.columns) EXPECT_NE(each.name, "tail_s") << "no rank has it";
}

TEST(FileTables, OfTheHostProfiler) {
  const ProfilerFolderWriter folder("host");
  folder.write("dataset_0.csv",
               "Operation,Stage,Occurrences,Avg. time(us),Custom Info\nMap,WorkerEntry,8,250.5,a=1\n");
  folder.write("host_info_0.csv", "tid,event,time_stamp(us)\n7,start,1500000\n");
  const FileTable dataset = table_in(folder, "dataset");
  EXPECT_EQ(column<std::string>(dataset, "operation"), (std::vector<std::string>{"Map"}));
  EXPECT_EQ(column<std::int64_t>(dataset, "count"), (std::vector<std::int64_t>{8}));
  EXPECT_NEAR(column<double>(dataset, "mean_s")[0], 250.5e-6, 1e-12);
  EXPECT_NEAR(column<double>(table_in(folder, "host_info"), "time_stamp_s")[0], 1.5, 1e-12);
}

std::string raw(int from) {
  std::string text;
  for (int i = from; i < from + 20; ++i) {
    const std::string start = std::to_string(1'000'000 + 40'000 * i);
    const std::string end = std::to_string(1'000'000 + 40'000 * i + 10'000);
    // Newer versions have the size second.
    text += i % 2 == 0
                ? "Node:GetNext_dequeue_wait, Run start:" + start + ", Run end:" + end + ", queue size:3"
                : "Node:GetNext_dequeue_wait, queue size:3, Run start:" + start + ", Run end:" + end;
    text +=
        std::string(1, '\0') + "Node:InitData, Run start:1, Run end:2, queue size:0" + std::string(1, '\0');
  }
  return text;
}

TEST(RawGetNext, SlicesOfTheProfilersFolderAreJoined) {
  const ProfilerFolderWriter folder("raw");
  folder.write("step_trace_raw_3_detail_time.csv", "step_num,start_point,end_point\n1,100,200\n");
  const std::string data = "PROF_1/device_0/data/DATA_PREPROCESS.dev.AICPUMI.0.slice_";
  folder.write(data + "1", raw(20));
  folder.write(data + "0", raw(0));
  folder.write(data + "0.done", "");
  folder.write("PROF_1/device_0/data/DATA_PREPROCESS.dev.AICPU.0.slice_0", "binary");
  const ProfilerFolder found = find_profiler_files(folder.path());
  ASSERT_EQ(found.ranks.size(), 1U) << "one rank, one device";
  EXPECT_EQ(found.ranks[0].raw_getnext.size(), 2U);
  const RankFiles files = read_rank(found.ranks[0]);
  ASSERT_TRUE(files.getnext);
  ASSERT_EQ(files.getnext->calls.size(), 40U);
  EXPECT_NEAR(files.getnext->calls[20].start_s, 1.8, 1e-9);
  EXPECT_EQ(files.getnext->calls[1].level, 3);
  const profile::Profile profile = profile_of(files);
  EXPECT_NEAR(profile.sink.step_s, 0.04, 1e-9);
  EXPECT_EQ(column<double>(table_in(folder, "getnext"), "total_s").size(), 40U);
}

TEST(RawGetNext, OneDamagedSliceIsNoted) {
  const ProfilerFolderWriter folder("raw-damaged");
  const std::string data = "PROF_1/device_2/data/DATA_PREPROCESS.AICPUMI.slice_";
  folder.write(data + "0", raw(0) + "Node:GetNext, Run start:5");
  folder.write(data + "1", "nothing");
  const ProfilerFolder found = find_profiler_files(folder.path());
  ASSERT_EQ(found.ranks.size(), 1U);
  EXPECT_EQ(found.ranks[0].rank, 2);
  const RankFiles files = read_rank(found.ranks[0]);
  EXPECT_EQ(files.getnext->calls.size(), 20U);
  EXPECT_EQ(files.getnext->notes.size(), 2U);
  EXPECT_THROW(read_raw_getnext("Node:GetNext, queue size:x", "r"), FormatError);
}

TEST(ProfilerTimeline, GetsTheNamesOfItsRows) {
  const ProfilerFolderWriter folder("timeline");
  const std::string name = "ascend_timeline_display_0.json";
  const std::string path = folder.path() + "/" + name;
  EXPECT_TRUE(is_profiler_timeline(path));
  EXPECT_FALSE(is_profiler_timeline("trace_view.json"));
  const std::string events =
      R"({"ph":"X","name":"Conv","pid":3,"tid":"41","ts":1,"dur":2},{"ph":"X","name":"free","pid":12000,"tid":8002,"ts":1,"dur":2}])";
  folder.write(name, "[" + events);
  const std::string named = named_timeline(path);
  EXPECT_NE(named.find(R"({"ph":"M","name":"process_name","pid":3,"tid":"41","args":{"name":"Device 3"}},)"),
            std::string::npos)
      << named;
  EXPECT_NE(named.find(R"("name":"thread_name","pid":3,"tid":"41","args":{"name":"Stream 41"})"),
            std::string::npos);
  EXPECT_NE(named.find(R"("name":"thread_name","pid":12000,"tid":8002,"args":{"name":"Free"})"),
            std::string::npos);
  EXPECT_TRUE(named.ends_with(events));
  for (const std::string same : {"[", "{}", "[{\"ph\":\"M\"}]", "[]"}) {
    folder.write(name, same);
    EXPECT_EQ(named_timeline(path), same);
  }
}

TEST(ClusterFiles, OfTheSampleFolder) {
  const std::string cluster = trace::conformance_file("mindspore/cluster_2stage_4rank");
  HEADRACE_NEEDS_FILE(cluster);
  const ProfilerFolder found = find_profiler_files(cluster);
  const FileTable ranks = ranks_table(found);
  EXPECT_EQ(ranks.rows(), 4U);
  EXPECT_EQ(column<double>(ranks, "stage"), (std::vector<double>{1, 1, 2, 2}));
  EXPECT_NEAR(column<double>(ranks, "computation_s")[0], 14.6986e-3, 1e-9) << "the file's last row";
  EXPECT_NEAR(column<double>(ranks, "communication_s")[0], 2.268855e-3, 1e-9);
  EXPECT_EQ(column<double>(ranks, "gflops")[0], 5385.552);
  EXPECT_EQ(read_table(*found.rank(0), "parallel_steps").rows(), 5U);
  const FileTable links = queried(read_table(*found.rank(1), "links"), {"", "", ""});
  const std::vector<double> speeds = column<double>(links, "bandwidth_gbps");
  ASSERT_FALSE(speeds.empty());
  for (const double speed : speeds) EXPECT_LT(speed, 1e3) << "the files' sums are far above";
  EXPECT_GT(read_table(*found.rank(0), "communication_operators").rows(), 100U);
}

}  // namespace
}  // namespace headrace::loader_files
