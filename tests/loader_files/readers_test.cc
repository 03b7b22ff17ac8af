#include <gtest/gtest.h>

#include "headrace/loader_files/batch_records.h"
#include "headrace/loader_files/cpu_file.h"
#include "headrace/loader_files/getnext_file.h"
#include "headrace/loader_files/pipeline_file.h"
#include "headrace/loader_files/step_trace_file.h"
#include "headrace/profile/errors.h"

namespace headrace::loader_files {
namespace {

constexpr const char* kPipeline = R"({"sampling_interval":10,"op_info":[
  {"op_id":3,"op_type":"ImageFolderOp","num_workers":8,
   "metrics":{"output_queue":{"length":128,"size":[0,5],"throughput":[0.0,2.58e-08]}}},
  {"op_id":0,"op_type":"BatchOp","num_workers":4,"children":[3],
   "metrics":{"output_queue":{"length":64,"size":[0,2]}}},
  {"op_id":4,"op_type":"EpochCtrlOp","num_workers":1,"children":[0],"metrics":null}]})";

TEST(PipelineProfiling, IsATreeWithSampledQueues) {
  const PipelineFile file = read_pipeline_profiling(kPipeline, "p");
  ASSERT_EQ(file.operators.size(), 3U);
  EXPECT_EQ(file.interval_ms, 10);
  EXPECT_EQ(file.root(), 2) << "the root is what no operator takes from, whatever its number";
  EXPECT_EQ(file.in_data_flow(2), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(file.operators[0].queue->capacity, 128);
  EXPECT_EQ(file.operators[0].queue->levels, (std::vector<std::int32_t>{0, 5}));
  EXPECT_EQ(file.operators[0].name(), "ImageFolderOp_3");
  EXPECT_FALSE(file.operators[2].queue);
  EXPECT_EQ(file.parent_of(0), 1);
  EXPECT_TRUE(file.notes.empty());
}

TEST(PipelineProfiling, RefusesWhatIsNone) {
  for (const char* text :
       {"", "[]", "{}", R"({"op_info":{}})", R"({"op_info":[]})", R"({"op_info":[{"op_id":1}]})",
        R"({"op_info":[{"op_id":"a","op_type":"MapOp"}]})", R"({"op_info":[)"}) {
    EXPECT_THROW(read_pipeline_profiling(text, "p"), FormatError) << text;
  }
}

TEST(PipelineProfiling, ACircleIsCutAndSaid) {
  const PipelineFile file = read_pipeline_profiling(
      R"({"op_info":[{"op_id":0,"op_type":"A","children":[1]},{"op_id":1,"op_type":"B","children":[0]}]})",
      "p");
  EXPECT_EQ(file.root(), 0);
  EXPECT_EQ(file.in_data_flow(0).size(), 2U);
  EXPECT_EQ(file.notes.size(), 1U);
}

TEST(PipelineTable, SaysTheSame) {
  const PipelineFile file = read_pipeline_table(
      "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
      "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
      "0,Batch,4,,,,0,10,,[4]\n"
      "4,Shuffle,1,\"[10, 10]\",10.0,64,0.15625,10,0,\"[2, 3]\"\n"
      "2,TFReader,4,\"[10, 20]\",15.0,64,0.2,10,4,\n"
      "3,TFReader,4,\"[10, 30]\",20.0,64,0.3,10,4,\n",
      "t");
  ASSERT_EQ(file.operators.size(), 4U);
  EXPECT_FALSE(file.operators[0].queue);
  EXPECT_EQ(file.children_of(1), (std::vector<int>{2, 3}));
  EXPECT_EQ(file.operators[3].queue->levels, (std::vector<std::int32_t>{10, 30}));
  EXPECT_EQ(file.in_data_flow(0), (std::vector<int>{2, 3, 1, 0}));
  EXPECT_THROW(read_pipeline_table("a,b\n1,2\n", "t"), FormatError);
}

TEST(BatchRecords, FourLinesAreABatch) {
  const BatchRecords records = read_batch_records(
      "0 1 1 4 10\n0 2 1 9 10\n0 0 1 5 10\n1 64 1 0 10\n0 1 2 1 50\n0 2 2 40 50\n0 0 2 39 50\n1 64 2 3 50\n0 "
      "1 3",
      "b");
  ASSERT_EQ(records.batches.size(), 2U);
  EXPECT_TRUE(records.has_times);
  EXPECT_EQ(records.batches[1].wait_ms, 39);
  EXPECT_EQ(records.batches[1].push_ms, 1);
  EXPECT_EQ(records.batches[1].total_ms, 40);
  EXPECT_EQ(records.batches[1].end_ms, 50);
  EXPECT_EQ(records.batches[1].level, 3);
  EXPECT_EQ(records.batches[1].capacity, 64);
  EXPECT_EQ(records.notes.size(), 1U) << "the line that was cut off";
}

TEST(BatchRecords, TheOldestHaveNoTimes) {
  const BatchRecords records = read_batch_records("1 64 1 3\n1 64 2 0\n", "b");
  ASSERT_EQ(records.batches.size(), 2U);
  EXPECT_FALSE(records.has_times);
  EXPECT_FALSE(records.batches[0].end_ms);
  EXPECT_EQ(records.batches[0].level, 3);
  EXPECT_THROW(read_batch_records("hello\n", "b"), FormatError);
  EXPECT_THROW(read_batch_records("", "b"), FormatError);
}

TEST(GetNextFile, TicksAreOfTheDevice) {
  const std::string text = "GetNext_dequeue_wait 154907895305 154907895805 3\nOther 1 2 3\n";
  EXPECT_NEAR(read_getnext(text, DeviceTicks::microseconds, "g").calls.at(0).end_s -
                  read_getnext(text, DeviceTicks::microseconds, "g").calls.at(0).start_s,
              500e-6, 1e-9);
  EXPECT_NEAR(read_getnext("GetNext 1000 3000 0\n", DeviceTicks::nanoseconds, "g").calls.at(0).end_s, 3e-6,
              1e-12);
  EXPECT_THROW(read_getnext("Other 1 2 3\n", DeviceTicks::nanoseconds, "g"), FormatError);
}

TEST(CpuFile, EveryValueHasItsOwnStamp) {
  const CpuFile file = read_cpu(
      R"({"sampling_interval":50,"cpu_processor_num":2,"time_stamp":[100,150,200,250],
      "device_info":{"idle_utilization":[0,0,80,0,70,0,60,0],"io_utilization":[0,0,1,1,2,2,3,3],
                     "user_utilization":[0,0,10,0],"sys_utilization":[0,0,5,0]},
      "process_info":{"user_utilization":[10,20,30],"sys_utilization":[1,2,3]},
      "op_info":[{"op_id":1,"metrics":{"user_utilization":[0,40,50,60],"sys_utilization":[0,1,1,1]}},
                 {"op_id":-1,"metrics":{"user_utilization":[0],"sys_utilization":[0]}}]})",
      "c");
  EXPECT_EQ(file.cores, 2);
  EXPECT_EQ(file.idle_percent.values, (std::vector<double>{80, 70, 60})) << "every second one is a repeat";
  EXPECT_EQ(file.idle_percent.end_ms, (std::vector<double>{150, 200, 250}));
  EXPECT_EQ(file.io_percent.values, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(file.user_percent.values, (std::vector<double>{10})) << "the first half of the run";
  EXPECT_EQ(file.user_percent.end_ms, (std::vector<double>{150}));
  EXPECT_EQ(file.process_percent.values, (std::vector<double>{11, 22, 33}));
  EXPECT_EQ(file.process_percent.end_ms, (std::vector<double>{150, 200, 250}));
  ASSERT_EQ(file.operators.size(), 1U) << "-1 is no operator";
  EXPECT_EQ(file.operators[0].percent.values, (std::vector<double>{41, 51, 61}));
  EXPECT_EQ(file.operators[0].percent.end_ms, (std::vector<double>{150, 200, 250}));
  EXPECT_EQ(file.operators[0].percent.mean_between(150, 250), 56);
}

TEST(CpuFile, ALengthThatNoVersionWritesIsLeftOut) {
  const CpuFile file = read_cpu(
      R"({"time_stamp":[1,2,3,4],"process_info":{"user_utilization":[1,2],"sys_utilization":[1,2]}})", "c");
  EXPECT_TRUE(file.process_percent.empty());
  EXPECT_EQ(file.notes.size(), 1U);
  EXPECT_THROW(read_cpu("{}", "c"), FormatError);
}

TEST(StepTraceFile, TicksAreOf10Nanoseconds) {
  const StepTraceFile file = read_step_trace(
      "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail,"
      "stream_10_parallel_0_start_point,stream_10_parallel_0_end_point\n"
      "1,1000000,2000000,1000000,1100000,1900000,100000,800000,100000,1200000,1300000\n"
      "2,2000000,3000000,1000000,2100000,2900000,100000,800000,100000,-,-\n"
      "3,oops,4000000,1,1,1,1,1,1,-,-\n"
      "-,0,0,1000000,0,0,100000,800000,100000,0,0\n",
      "s");
  ASSERT_EQ(file.steps.size(), 2U);
  EXPECT_NEAR(file.steps[0].total_s, 10e-3, 1e-9);
  EXPECT_NEAR(file.steps[0].interval_s, 1e-3, 1e-9);
  ASSERT_EQ(file.collectives, (std::vector<std::string>{"stream_10_parallel_0"}));
  EXPECT_NEAR(file.steps[0].collectives[0]->start_s, 2e-3, 1e-9);
  EXPECT_NEAR(file.steps[0].collectives[0]->takes_s, 1e-3, 1e-9);
  EXPECT_FALSE(file.steps[1].collectives[0]);
  ASSERT_TRUE(file.average);
  EXPECT_EQ(file.notes.size(), 1U) << "step 3 lacks its start";
  EXPECT_THROW(read_step_trace("a,b\n", "s"), FormatError);
}

TEST(StepPoints, AreNamesOfOperators) {
  const StepPoints points = read_step_points(R"({"fp_start":"Default/a","bp_end":"Default/b"})", "s");
  EXPECT_EQ(points.forward_begins, "Default/a");
  EXPECT_EQ(points.backward_ends, "Default/b");
  EXPECT_EQ(read_step_points(R"([{"fp_start":"x","bp_end":"y"}])", "s").forward_begins, "x");
  EXPECT_THROW(read_step_points("[]", "s"), FormatError);
}

}  // namespace
}  // namespace headrace::loader_files
