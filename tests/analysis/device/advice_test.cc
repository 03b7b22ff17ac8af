// Advice: each rule on a case that it is for and on one that it is not, and what it could not look at.
#include "headrace/analysis/device/advice.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "analysis/device/trace_builder.h"
#include "trace/ascend/small_database.h"
#include "trace/ascend/small_run.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;
using trace::ascend::find_profiles;

struct Row {
  std::string severity, says, figures, cure, source;
};

std::vector<Row> rows_of(const Table& table, const std::string& rule) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.texts("rule")[i] != rule) continue;
    const auto text = [&](const char* column) { return std::string(table.texts(column)[i]); };
    rows.push_back({text("severity"), text("says"), text("figures"), text("cure"), text("source")});
  }
  return rows;
}

Row first(const Table& table, const std::string& rule) {
  const std::vector<Row> rows = rows_of(table, rule);
  if (rows.empty()) ADD_FAILURE() << "no row of " << rule;
  return rows.empty() ? Row{} : rows.front();
}

class AdviceOnFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("advice-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(int rank, const std::string& name, const std::string& text, bool beside = false) {
    const fs::path folder = root_ / ("rank" + std::to_string(rank) + "_ascend_pt");
    const fs::path path = (beside ? folder : folder / "ASCEND_PROFILER_OUTPUT") / name;
    fs::create_directories(folder / "ASCEND_PROFILER_OUTPUT");
    fs::create_directories(path.parent_path());
    std::ofstream(folder / ("profiler_info_" + std::to_string(rank) + ".json")) << "{}";
    std::ofstream(path, std::ios::binary) << text;
  }
  Table of_files() const { return advice({}, find_profiles(root_.string())); }

  fs::path root_;
};

TEST(Advice, EveryRuleHasARowAndSaysWhyItCouldNotLook) {
  const Table table = advice({}, std::vector<trace::ascend::ProfileFolder>(1));
  std::set<std::string> rules;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    rules.insert(std::string(table.texts("rule")[i]));
    EXPECT_EQ(table.texts("severity")[i], "not checked");
    EXPECT_TRUE(table.texts("says")[i].starts_with("not checked: ")) << table.texts("says")[i];
  }
  EXPECT_EQ(rules.size(), 29U);
  EXPECT_EQ(first(table, "aicpu_operators").says, "not checked: file kernel_details.csv absent");
}

TEST(Advice, OfAnyProfiler) {
  TraceBuilder builder;
  builder.step(1, 0, 1000).host("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 300);
  builder.call("cudaLaunchKernel", 1, 310, 5).kernel("gemm", 1, 320, 100);
  builder.host("cpu_op", "aten::item", 430, 200).call("cudaStreamSynchronize", 0, 435, 190);
  builder.call("cudaLaunchKernel", 2, 700, 5).kernel("ncclDevKernel_AllReduce", 2, 710, 200);
  const trace::Trace trace = builder.build();
  const Table table = advice(one(trace));
  EXPECT_EQ(first(table, "data_loading").severity, "high");
  EXPECT_NE(first(table, "data_loading").figures.find("300 us"), std::string::npos);
  EXPECT_EQ(first(table, "exposed_communication").severity, "high");
  EXPECT_EQ(first(table, "launch_bound").severity, "high");
  EXPECT_NE(first(table, "launch_bound").figures.find("290 us"), std::string::npos);
  EXPECT_EQ(first(table, "free_time").severity, "none");  // the same 290 us
  EXPECT_NE(first(table, "synchronisation").figures.find("cudaStreamSynchronize, took 190 us in aten::item"),
            std::string::npos);
  EXPECT_EQ(first(table, "preparing").severity, "none");  // the same 300 us
  for (std::size_t i = 0; i < table.rows(); ++i)
    EXPECT_NE(table.texts("rule")[i], "operator_compilation") << "a rule of another device";
  EXPECT_EQ(first(table, "slow_rank").says,
            "not checked: there is one rank only; load the folder of all ranks");
}

TEST(Advice, ABusyDeviceNeedsNone) {
  TraceBuilder builder;
  builder.step(1, 0, 1000).host("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 10);
  builder.call("cudaLaunchKernel", 1, 11, 2).kernel("gemm", 1, 14, 900);
  const trace::Trace trace = builder.build();
  const Table table = advice(one(trace));
  for (const char* rule : {"free_time", "exposed_communication", "data_loading", "preparing", "launch_bound",
                           "synchronisation", "garbage_collection", "sync_batch_norm"})
    EXPECT_EQ(first(table, rule).severity, "none") << rule;
}

TEST(Advice, CollectionsOfGarbage) {
  TraceBuilder builder;
  builder.step(1, 0, 9000).kernel("gemm", 0, 10, 20).host("gc", "GC", 100, 2500).host("gc", "GC", 4000, 10);
  const trace::Trace recorded = builder.build();
  const Row row = first(advice(one(recorded)), "garbage_collection");
  EXPECT_EQ(row.severity, "medium");
  EXPECT_EQ(row.figures, "1 long collections, 2.50 ms in all, the longest 2.50 ms");

  TraceBuilder silent;
  silent.call("cudaLaunchKernel", 1, 0, 5).kernel("gemm", 1, 10, 20);
  silent.call("cudaLaunchKernel", 2, 300'000, 5).kernel("gemm", 2, 300'010, 20);
  const trace::Trace paused = silent.build();
  EXPECT_EQ(first(advice(one(paused)), "garbage_collection").severity, "low");
  silent.call("cudaMalloc", 0, 100'000, 50'000);
  const trace::Trace occupied = silent.build();
  EXPECT_EQ(first(advice(one(occupied)), "garbage_collection").severity, "none");
}

TEST(Advice, CallsOfTheHost) {
  std::string events;
  char text[800];
  for (int i = 0; i < 25; ++i) {
    std::snprintf(
        text, sizeof text,
        R"(,{"ph":"X","name":"AscendCL@aclopCompileAndExecute","pid":102688,"tid":102,"ts":"%d.0","dur":5})"
        R"(,{"ph":"X","name":"Node@launch","pid":102688,"tid":102,"ts":"%d.0","dur":5})"
        R"(,{"ph":"X","name":"AscendCL@aclrtSynchronizeStream","pid":102688,"tid":102,"ts":"%d.0","dur":5})"
        R"(,{"ph":"X","name":"AscendCL@aclrtFree","pid":102688,"tid":102,"ts":"%d.0","dur":500})",
        2'000'000 + 1000 * i, 2'000'010 + 1000 * i, 2'000'020 + 1000 * i, 2'000'030 + 1000 * i);
    events += text;
  }
  const trace::Trace trace =
      TraceBuilder::trace_of(trace::ascend::with_overlap_analysis(trace::ascend::small_trace_view(), events));
  const Table table = advice(one(trace));
  EXPECT_EQ(first(table, "operator_compilation").severity, "high");
  EXPECT_EQ(first(table, "synchronised_launches").severity, "high");  // 25 of 28
  EXPECT_NE(first(table, "synchronised_launches").figures.find("25 of 28"), std::string::npos);
  EXPECT_EQ(first(table, "memory_calls").severity, "medium");
  const trace::Trace small = TraceBuilder::trace_of(trace::ascend::small_trace_view());
  for (const char* rule : {"operator_compilation", "synchronised_launches", "memory_calls"})
    EXPECT_EQ(first(advice(one(small)), rule).severity, "none") << rule;
}

TEST(Advice, SequencesThatTheDeviceHasInOnePiece) {
  std::string events;
  int at = 2'000'000;
  for (const char* name : {"aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul", "aten::gelu",
                           "Optimizer.step#AdamW.step"})
    events += R"(,{"ph":"X","name":")" + std::string(name) +
              R"(","cat":"cpu_op","pid":100,"tid":101,"ts":")" + std::to_string(at += 10) + R"(","dur":5})";
  const trace::Trace trace =
      TraceBuilder::trace_of(trace::ascend::with_overlap_analysis(trace::ascend::small_trace_view(), events));
  EXPECT_EQ(first(advice(one(trace)), "affinity_apis").figures,
            "1 x torch_npu.fast_gelu, 1 x torch_npu.npu_rms_norm, 1 x torch_npu.optim.NpuFusedAdamW");
}

TEST_F(AdviceOnFiles, Kernels) {
  std::string rows =
      "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Block Dim,aic_mac_ratio\n";
  for (int i = 0; i < 8; ++i) {
    rows += "a,Cast,dynamic,AI_VECTOR_CORE," + std::to_string(1000 * i) + ",10,8,0.1\n";
    rows += "b,Add,dynamic,AI_VECTOR_CORE," + std::to_string(1000 * i + 100) + ",30,40,0.2\n";
    rows += "c,Index,dynamic,AI_CPU," + std::to_string(1000 * i + 200) + ",50,1,N/A\n";
  }
  write(0, "kernel_details.csv", rows);
  Table table = of_files();
  EXPECT_EQ(first(table, "aicpu_operators").severity, "high");
  EXPECT_EQ(first(table, "aicpu_operators").figures, "Index 8 x, 400 us in all");
  EXPECT_EQ(first(table, "dynamic_shapes").severity, "medium");
  EXPECT_EQ(first(table, "unbound_operators").severity, "medium");
  EXPECT_NE(first(table, "unbound_operators").figures.find("Add 8 x, 240 us"), std::string::npos);
  const std::vector<Row> fusible = rows_of(table, "fusible_operators");
  ASSERT_EQ(fusible.size(), 1U);
  EXPECT_NE(fusible[0].says.find("bound by the host: Cast -> Add"), std::string::npos);
  EXPECT_EQ(first(table, "block_dim").severity, "not checked");
  write(0, "PROF_1/device_0/info.json.0", R"({"DeviceInfo": [{"id": 0, "ai_core_num": 20, "aiv_num": 40}]})",
        true);
  table = of_files();
  EXPECT_EQ(first(table, "block_dim").figures, "Cast 8 x, 80.0 us in all");
}

constexpr const char* kPipelines =
    "Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,aic_mac_ratio,"
    "aic_mte2_ratio,aic_fixpipe_ratio,aiv_vec_ratio,aiv_mte2_ratio,aiv_mte3_ratio\n";

TEST_F(AdviceOnFiles, OperatorsThatLeaveThePipelinesIdle) {
  // 2 x 8192 x 4100 x 2 bytes; 300 KB; attention; a vector operator with 9 % of the time.
  write(
      0, "kernel_details.csv",
      std::string(kPipelines) +
          "a,MatMulV2,AI_CORE,0,900,\"\"\"8192,4100;8192,4100\"\"\",FLOAT16;FLOAT16,0.7,0.9,0.1,N/A,N/A,N/A\n"
          "b,MatMulV2,AI_CORE,1000,10,\"\"\"256,256;256,256\"\"\",FLOAT16;FLOAT16,0.1,0.1,0.1,N/A,N/A,N/A\n"
          "c,FlashAttentionScore,MIX_AIC,2000,100,\"\"\"1,128,64\"\"\",FLOAT16,0.5,0.5,0.5,0.5,0.1,0.1\n"
          "d,Add,AI_VECTOR_CORE,3000,100,\"\"\"100\"\"\",FLOAT,N/A,N/A,N/A,0.3,0.2,0.2\n");
  const Row row = first(of_files(), "core_performance");
  EXPECT_EQ(row.severity, "high");
  EXPECT_EQ(row.figures,
            "MatMulV2 1 x, 900 us in all, innermost axes of 1 do not fit, Add 1 x, 100 us in all, "
            "FlashAttentionScore 1 x, 100 us in all, innermost axes of 1 do not fit");
  EXPECT_NE(row.cure.find("multiples of 256"), std::string::npos);
}

TEST_F(AdviceOnFiles, OperatorsThatKeepAPipelineBusy) {
  write(0, "kernel_details.csv",
        std::string(kPipelines) +
            "a,MatMulV2,AI_CORE,0,900,\"\"\"8192,4100;8192,4100\"\"\",FLOAT16;FLOAT16,0.85,0.9,0.1,N/A,N/A,N/"
            "A\n"
            "c,FlashAttentionScore,MIX_AIC,2000,100,\"\"\"1,128,64\"\"\",FLOAT16,0.5,0.9,0.5,0.5,0.1,0.1\n"
            "d,Add,AI_VECTOR_CORE,3000,100,\"\"\"100\"\"\",FLOAT,N/A,N/A,N/A,0.3,0.8,0.2\n"
            "e,Cast,AI_VECTOR_CORE,4000,1,\"\"\"100\"\"\",FLOAT,N/A,N/A,N/A,0.1,0.1,0.1\n");
  EXPECT_EQ(first(of_files(), "core_performance").severity, "none");
  write(0, "kernel_details.csv",
        "Name,Type,Accelerator Core,Start Time(us),Duration(us)\na,Add,AI_CORE,0,1\n");
  EXPECT_EQ(first(of_files(), "core_performance").severity, "not checked");
}

/// Of rank 0: a database with frequencies of the cores, one each 10 ms.
std::string frequencies(const std::vector<int>& mhz) {
  std::string sql = "CREATE TABLE AICORE_FREQ (deviceId INTEGER, timestampNs NUMERIC, freq INTEGER);";
  for (std::size_t i = 0; i < mhz.size(); ++i) {
    sql += "INSERT INTO AICORE_FREQ VALUES (0," + std::to_string(10'000'000 * (i + 1)) + "," +
           std::to_string(mhz[i]) + ");";
  }
  return sql;
}

TEST_F(AdviceOnFiles, CoresBelowTheirFrequency) {
  for (const auto& [mhz, severity] : {std::pair{std::vector<int>{1800, 900, 1800}, "high"},
                                      std::pair{std::vector<int>{1800, 1800, 900}, "none"}}) {
    write(0, "x.csv", "a\n1\n");
    const trace::ascend::DatabaseFile made(frequencies(mhz));
    fs::copy_file(made.path(), root_ / "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
                  fs::copy_options::overwrite_existing);
    const Row row = first(of_files(), "core_frequency");
    EXPECT_EQ(row.severity, severity) << row.says << row.figures;
    if (row.severity == "high") {
      EXPECT_EQ(row.figures, "rank 0: 1350 MHz of 1800 MHz, 25 % below");
    }
  }
}

TEST_F(AdviceOnFiles, GoodKernels) {
  write(0, "kernel_details.csv",
        "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Block Dim,aic_mac_ratio\n"
        "a,MatMul,static,AI_CORE,0,100,20,0.95\n");
  const Table table = of_files();
  for (const char* rule : {"aicpu_operators", "dynamic_shapes", "unbound_operators", "fusible_operators"})
    EXPECT_EQ(first(table, rule).severity, "none") << rule;
}

std::string communication(double size_mb, double transit_ms, double elapse_ms, const char* transport) {
  char text[2000];
  std::snprintf(text, sizeof text,
                R"json({"step1": {"collective": {"hcom_allReduce__1_0_1@7": {
                "Communication Time Info": {"Elapse Time(ms)": %f},
                "Communication Bandwidth Info": {"%s": {"Transit Size(MB)": %f, "Transit Time(ms)": %f,
                "Bandwidth(GB/s)": %f, "Size Distribution": {}}}}}}})json",
                elapse_ms, transport, size_mb, transit_ms, size_mb / transit_ms);
  return text;
}

TEST_F(AdviceOnFiles, Communication) {
  write(0, "communication.json", communication(4, 0.4, 5, "SDMA"));
  write(1, "communication.json", communication(4, 0.5, 5, "SDMA"));
  Table table = of_files();
  EXPECT_EQ(first(table, "small_packets").severity, "medium");
  EXPECT_NE(first(table, "small_packets").figures.find("2 of 2 SDMA operations move less than 16 MB"),
            std::string::npos);
  EXPECT_EQ(first(table, "slow_link").severity, "medium");
  EXPECT_NE(first(table, "slow_link").says.find("rank 1"), std::string::npos);
  EXPECT_EQ(first(table, "retransmission").severity, "none");
  write(0, "communication.json", communication(40, 4500, 5000, "RDMA"));
  write(1, "communication.json", communication(40, 4500, 4100, "RDMA"));
  table = of_files();
  EXPECT_EQ(first(table, "retransmission").severity, "high");
  EXPECT_EQ(first(table, "small_packets").severity, "none");
  EXPECT_EQ(first(table, "slow_link").severity, "none");
}

TEST_F(AdviceOnFiles, EnvironmentVariables) {
  write(0, "profiler_metadata.json", R"({"ENV_VARIABLES": {"ASCEND_LAUNCH_BLOCKING": "1", "HCCL_ALGO": ""}})",
        true);
  const std::vector<Row> rows = rows_of(of_files(), "environment_variables");
  ASSERT_EQ(rows.size(), 1U);  // what the file does not list is not judged
  EXPECT_EQ(rows[0].severity, "high");
  EXPECT_EQ(rows[0].figures, "ASCEND_LAUNCH_BLOCKING=\"1\"");
}

TEST(Advice, ARankThatComesLate) {
  const auto rank = [](int number, double kernel_us, double collective_us) {
    TraceBuilder builder;
    builder.rank(number).step(1, 0, 1000).kernel("gemm", 0, 10, kernel_us);
    builder.kernel("ncclDevKernel_AllReduce", 0, 10 + kernel_us, collective_us, 9);
    return builder.build();
  };
  std::vector<trace::Trace> traces;
  traces.push_back(rank(0, 300, 400));
  traces.push_back(rank(1, 600, 100));
  const std::vector<Row> rows = rows_of(advice(traces), "slow_rank");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[0].says.find("rank 1 makes the others wait: its computing time"), std::string::npos);
  EXPECT_NE(rows[1].says.find("rank 1"), std::string::npos);  // least in the collective, so the last
}

TEST(AdviceSample, IsNotAboutTheInput) {
  const std::string path = trace::conformance_file("ascend/text_level2/rank0_ascend_pt");
  HEADRACE_NEEDS_FILE(path);
  const auto profiles = find_profiles(path);
  ASSERT_EQ(profiles.size(), 1U);
  std::vector<trace::Trace> traces;
  traces.push_back(trace::load_trace(profiles[0].events_file()));
  const Table table = advice(traces, profiles);
  EXPECT_EQ(first(table, "data_loading").severity, "none");
  EXPECT_NE(first(table, "data_loading").figures.find("2.4 %"), std::string::npos);
  EXPECT_NE(first(table, "exposed_communication").figures.find("74 %"), std::string::npos);
  EXPECT_NE(first(table, "free_time").figures.find("19 %"), std::string::npos);
  EXPECT_NE(first(table, "preparing").figures.find("12 %"), std::string::npos);
  EXPECT_NE(first(table, "synchronisation").figures.find("85.5 ms"), std::string::npos);
}

}  // namespace
}  // namespace headrace::analysis::device
