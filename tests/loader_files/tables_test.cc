#include <gtest/gtest.h>

#include <cmath>

#include "headrace/loader_files/file_table.h"
#include "headrace/loader_files/pipeline_summary_file.h"
#include "headrace/profile/errors.h"
#include "loader_files/read_columns.h"
#include "support/profiler_folder.h"
#include "trace/conformance_data.h"

namespace headrace::loader_files {
namespace {

using test::ProfilerFolderWriter;

TEST(FileTables, UnitsInHeadingsBecomeSeconds) {
  const ProfilerFolderWriter folder("gpu");
  folder.write("gpu_op_type_info_0.csv",
               "op_type,type_occurrences,total_time(us),avg_time(us)\nMatMul,2,3000,1500\nCast,4,-,250\n");
  const FileTable table = table_in(folder, "gpu_types");
  EXPECT_EQ(column<std::string>(table, "op_type"), (std::vector<std::string>{"MatMul", "Cast"}));
  EXPECT_EQ(column<std::int64_t>(table, "type_occurrences"), (std::vector<std::int64_t>{2, 4}));
  EXPECT_NEAR(column<double>(table, "total_time_s")[0], 3e-3, 1e-12);
  EXPECT_TRUE(std::isnan(column<double>(table, "total_time_s")[1]));
}

TEST(FileTables, MemoryOfEachGraph) {
  const ProfilerFolderWriter folder("memory");
  folder.write(
      "memory_usage_details_0.json",
      R"({"1":{"lines":[0.5,1.5],"breakdowns":[[{"tensor_name":"a","size":2},{"tensor_name":"b","size":3}],[]]},
                   "2":{"lines":[1]}})");
  const FileTable curve = table_in(folder, "memory_curve");
  EXPECT_EQ(column<std::string>(curve, "graph"), (std::vector<std::string>{"1", "1", "2"}));
  EXPECT_EQ(column<double>(curve, "memory"), (std::vector<double>{0.5, 1.5, 1}));
  const FileTable tensors = table_in(folder, "memory_breakdown");
  EXPECT_EQ(column<std::string>(tensors, "tensor_name"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(column<std::int64_t>(tensors, "size"), (std::vector<std::int64_t>{2, 3}));
}

TEST(FileTables, GroupsAddUpAndOrderIsLargestFirst) {
  const ProfilerFolderWriter folder("groups");
  folder.write(
      "aicpu_intermediate_0.csv",
      "serial_number,kernel_type,total_time,dispatch_time,run_start,run_end\n1,GetNext,1.0,0.1,10,20\n"
      "2,InitData,5.0,0.1,10,20\n3,GetNext,2.0,0.2,30,40\n");
  const FileTable all = table_in(folder, "aicpu_operators");
  const FileTable groups = queried(all, {"", "type", "total_s"});
  EXPECT_EQ(column<std::string>(groups, "type"), (std::vector<std::string>{"InitData", "GetNext"}));
  EXPECT_EQ(column<std::int64_t>(groups, "rows"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_NEAR(column<double>(groups, "total_s")[1], 3e-3, 1e-12);
  EXPECT_EQ(queried(all, {"getnext", "", ""}).rows(), 2U);
  EXPECT_THROW(queried(all, {"", "colour", ""}), UsageError);
}

TEST(FileTables, NamesAreOfFilesThatAreThere) {
  const ProfilerFolderWriter folder("names");
  folder.write("flops_summary_0.json", R"({"FLOPs":1.5,"name":"x"})");
  const RankFolder rank = find_profiler_files(folder.path()).ranks.at(0);
  EXPECT_EQ(table_names(rank), (std::vector<std::string>{"flops"}));
  EXPECT_EQ(column<double>(read_table(rank, "flops"), "value"), (std::vector<double>{1.5}));
  EXPECT_THROW(read_table(rank, "steps"), UsageError);
}

TEST(PipelineSummaryFile, JsonAndTableSayTheSame) {
  const PipelineSummaryFile json = read_pipeline_summary(
      R"json({"op_ids":[0,1],"op_names":["Batch","Generator"],"num_workers":[2,1],"queue_average_size":[-1,8.0],
          "queue_utilization_pct":[-1,50.0],"queue_empty_freq_pct":[-1,25.0],"children_ids":[[1],[]],
          "avg_cpu_pct":[0.5,1.0],"bottleneck_warning":["Batch(id=0)"],"bottleneck_suggestion":["More."]})json",
      "s");
  const PipelineSummaryFile table = read_pipeline_summary_table(
      "op_ids,0,1\nop_names,Batch,Generator\nnum_workers,2,1\nqueue_average_size,-1,8.0\n"
      "queue_utilization_pct,-1,50.0\nqueue_empty_freq_pct,-1,25.0\nchildren_ids,[1],[]\navg_cpu_pct,0.5,1."
      "0\n"
      "bottleneck_warning,Batch(id=0)\nbottleneck_suggestion,More.\n",
      "s");
  for (const PipelineSummaryFile& file : {json, table}) {
    ASSERT_EQ(file.operators.size(), 2U);
    EXPECT_FALSE(file.operators[0].queue_average_size);
    EXPECT_EQ(file.operators[1].queue_utilisation, 0.5);
    EXPECT_EQ(file.operators[1].queue_empty_share, 0.25);
    EXPECT_EQ(file.bottleneck, "Batch(id=0)");
    const PipelineFile pipeline = file.as_pipeline();
    EXPECT_EQ(pipeline.operators[0].name(), "BatchOp_0");
    EXPECT_EQ(pipeline.operators[1].queue->capacity, 16);
    EXPECT_EQ(pipeline.in_data_flow(pipeline.root()), (std::vector<int>{1, 0}));
  }
  EXPECT_THROW(read_pipeline_summary("{}", "s"), FormatError);
  EXPECT_THROW(read_pipeline_summary_table("a,b\n", "s"), FormatError);
}

TEST(DeviceFiles, OfTheSampleFolders) {
  const std::string run = trace::conformance_file("mindspore/run_2");
  HEADRACE_NEEDS_FILE(run);
  const RankFolder rank = find_profiler_files(run).ranks.at(0);
  EXPECT_EQ(rank.rank, 1);
  const FileTable types = read_table(rank, "aicore_types");
  EXPECT_EQ(types.rows(), 21U);
  const FileTable most = queried(types, {"", "", "total_s"});
  EXPECT_EQ(column<std::string>(most, "type")[0], "MatMul");
  EXPECT_NEAR(column<double>(most, "total_s")[0], 20.65774e-3, 1e-9);
  EXPECT_NEAR(column<double>(most, "total_share")[0], 0.8947, 1e-4);
  const FileTable operators = read_table(rank, "aicore_operators");
  EXPECT_EQ(column<std::string>(operators, "type")[0], "AssignAdd");

  const std::string cluster = trace::conformance_file("mindspore/cluster_2stage_4rank");
  const FileTable steps = read_table(*find_profiler_files(cluster).rank(0), "steps");
  ASSERT_GT(steps.rows(), 0U);
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    EXPECT_NEAR(column<double>(steps, "iteration_gap_s")[i] + column<double>(steps, "forward_backward_s")[i] +
                    column<double>(steps, "tail_s")[i],
                column<double>(steps, "total_s")[i], 1e-7);
  }
}

}  // namespace
}  // namespace headrace::loader_files
