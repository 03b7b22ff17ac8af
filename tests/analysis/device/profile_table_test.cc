// Tables that the profiler wrote: headers, units, absent values, several ranks.
#include "headrace/analysis/device/profile_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/profile/errors.h"
#include "trace/ascend/small_database.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;
using trace::ascend::find_profiles;

class ProfileTable : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("tables-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(int rank, const std::string& name, const std::string& text) {
    const fs::path folder = root_ / ("rank" + std::to_string(rank) + "_ascend_pt");
    fs::create_directories(folder / "ASCEND_PROFILER_OUTPUT");
    std::ofstream(folder / ("profiler_info_" + std::to_string(rank) + ".json")) << "{}";
    std::ofstream(folder / "ASCEND_PROFILER_OUTPUT" / name, std::ios::binary) << text;
  }

  Table table(const std::string& name) const { return profile_table(find_profiles(root_.string()), name); }

  fs::path root_;
};

TEST_F(ProfileTable, HeadersGiveNamesAndUnits) {
  write(
      0, "kernel_details.csv",
      "Step Id,Name,Start Time(us),Duration(us),Wait Time(us),aic_mac_ratio,Block Dim,cube_utilization(%)\r\n"
      "50,MatMul,1736412474730135.222\t,55.161,0,0.5,32,N/A\r\n"
      "50,Add,1736412474730296.625\t,N/A,106.242,N/A,8,66.3\r\n");
  const Table kernels = table("kernel_details");
  EXPECT_EQ(kernels.integers("rank"), (Integers{0, 0}));
  EXPECT_EQ(kernels.integers("step_id"), (Integers{50, 50}));
  EXPECT_EQ(kernels.integers("start_time_ns"), (Integers{1736412474730135222, 1736412474730296625}));
  EXPECT_DOUBLE_EQ(kernels.numbers("duration_s")[0], 55.161e-6);
  EXPECT_TRUE(std::isnan(kernels.numbers("duration_s")[1]));
  EXPECT_TRUE(std::isnan(kernels.numbers("aic_mac_ratio")[1]));
  EXPECT_EQ(kernels.integers("block_dim")[1], 8);
  EXPECT_DOUBLE_EQ(kernels.numbers("cube_utilization_pct")[1], 66.3);
  EXPECT_EQ(kernels.texts("name")[0], "MatMul");
}

TEST_F(ProfileTable, VersionsWithOtherColumnsBecomeOneTable) {
  write(0, "op_statistic.csv", "OP Type,Count,Total Time(us)\nMatMul,3,10\n");
  write(1, "op_statistic.csv", "Device_id,OP Type,Count,Total Time(us)\n1,Add,4,20\n");
  write(2, "other.csv", "a\n1\n");
  const Table statistic = table("op_statistic");
  EXPECT_EQ(statistic.integers("rank"), (Integers{0, 1}));
  EXPECT_EQ(statistic.integers("count"), (Integers{3, 4}));
  EXPECT_TRUE(std::isnan(statistic.numbers("device_id")[0]));
  EXPECT_EQ(statistic.numbers("device_id")[1], 1);
  ASSERT_EQ(statistic.notes.size(), 1U);
  EXPECT_NE(statistic.notes[0].find("has no op_statistic.csv"), std::string::npos);
}

TEST_F(ProfileTable, ReleasesThatNeverCameAreAbsent) {
  write(0, "operator_memory.csv",
        "Name,Size(KB),Allocation Time(us),Release "
        "Time(us),Duration(us)\naten::empty,18816.5,1736412474720984.920\t,,\n");
  const Table memory = table("operator_memory");
  EXPECT_EQ(memory.integers("allocation_time_ns")[0], 1736412474720984920);
  EXPECT_EQ(memory.integers("release_time_ns")[0], -1);
  EXPECT_TRUE(std::isnan(memory.numbers("duration_s")[0]));
  EXPECT_DOUBLE_EQ(memory.numbers("size_kb")[0], 18816.5);
}

TEST_F(ProfileTable, DataSetTablesAndColumnsOfOneName) {
  write(0, "dataset.csv",
        "Operation,Stage,Occurrences,Avg. time(us),Custom Info,Stage\nmap,run,3,2.5,\"a,b\",x\n");
  const Table dataset = table("dataset");
  EXPECT_DOUBLE_EQ(dataset.numbers("avg_time_s")[0], 2.5e-6);
  EXPECT_EQ(dataset.texts("custom_info")[0], "a,b");
  EXPECT_EQ(dataset.texts("stage_2")[0], "x");
}

TEST_F(ProfileTable, UnknownNamesListWhatThereIs) {
  write(0, "dataset.csv", "Operation\nmap\n");
  for (const char* name : {"nothing", "../dataset", ".", ""}) {
    try {
      table(name);
      FAIL() << name;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("there are: dataset"), std::string::npos);
    }
  }
}

TEST_F(ProfileTable, DamageNamesTheFile) {
  write(0, "dataset.csv", "");
  EXPECT_THROW(table("dataset"), FormatError);
  write(0, "communication.json", R"({"step5": [)");
  EXPECT_THROW(table("communication"), FormatError);
  write(0, "communication_matrix.json",
        R"json({"step5": {"collective": {"a@b": {"0-1": 7, "x": {}, "2-3": {"Transit Size(MB)": 2}}}}})json");
  const Table matrix = table("communication_matrix");
  ASSERT_EQ(matrix.rows(), 2U);
  EXPECT_EQ(matrix.integers("source"), (Integers{0, 2}));
  EXPECT_TRUE(std::isnan(matrix.numbers("size_mb")[0]));
}

TEST_F(ProfileTable, DatabasesGiveTheSameCommunication) {
  write(0, "communication.json",
        R"json({"step5": {"p2p": {}, "collective": {"hcom_allReduce__1_0_1@77": {
          "Communication Time Info": {"Start Timestamp(us)": 1000.5, "Elapse Time(ms)": 4, "Transit Time(ms)": 1,
            "Wait Time(ms)": 2, "Synchronization Time(ms)": 1.5, "Idle Time(ms)": 1},
          "Communication Bandwidth Info": {"SDMA": {"Transit Size(MB)": 8, "Transit Time(ms)": 1,
            "Bandwidth(GB/s)": 8, "Large Packet Ratio": 0, "Size Distribution": {"2": [4, 1]}}}}}}})json");
  const Table text = table("communication");
  const Table text_bandwidth = table("communication_bandwidth");
  fs::remove_all(root_);
  write(0, "x.csv", "a\n1\n");
  const trace::ascend::DatabaseFile made(
      "CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, "
      "elapse_time NUMERIC,"
      "transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, "
      "type TEXT);"
      "INSERT INTO CommAnalyzerTime VALUES "
      "('hcom_allReduce__1_0_1','77',1000.5,4,1,2,1.5,1,'step5','collective');"
      "CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT, group_name TEXT, transport_type TEXT, "
      "transit_size NUMERIC,"
      "transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count "
      "NUMERIC,"
      "total_duration NUMERIC, step TEXT, type TEXT);"
      "INSERT INTO CommAnalyzerBandwidth VALUES "
      "('hcom_allReduce__1_0_1','77','SDMA',8,1,8,0,2,4,1,'step5','collective');"
      "CREATE TABLE StepTraceTime (step TEXT, computing NUMERIC); INSERT INTO StepTraceTime VALUES ('5', "
      "8903.431);",
      "analysis.db");
  fs::copy_file(made.path(), root_ / "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db");
  const Table database = table("communication");
  ASSERT_EQ(database.rows(), 1U);
  for (const Column& column : text.columns()) EXPECT_EQ(database.column(column.name).size(), 1U);
  EXPECT_EQ(database.integers("start_ns"), text.integers("start_ns"));
  EXPECT_EQ(database.integers("start_ns")[0], 1'000'500);
  EXPECT_EQ(database.numbers("elapse_s"), text.numbers("elapse_s"));
  EXPECT_EQ(database.numbers("wait_ratio"), text.numbers("wait_ratio"));
  EXPECT_DOUBLE_EQ(text.numbers("wait_ratio")[0], 2.0 / 3);
  EXPECT_EQ(database.texts("operation")[0], text.texts("operation")[0]);
  EXPECT_EQ(database.texts("group")[0], "77");
  EXPECT_EQ(database.texts("step")[0], text.texts("step")[0]);
  EXPECT_EQ(table("communication_bandwidth").numbers("packets_s"), text_bandwidth.numbers("packets_s"));
  EXPECT_DOUBLE_EQ(table("step_trace_time").numbers("computing_s")[0], 8903.431e-6);
  EXPECT_TRUE(std::isnan(table("step_trace_time").numbers("free_s")[0]));
}

TEST_F(ProfileTable, KernelsOfADatabase) {
  write(5, "x.csv", "a\n1\n");
  const trace::ascend::DatabaseFile made(trace::ascend::kSmallDatabase);
  fs::copy_file(made.path(), root_ / "rank5_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_5.db");
  const Table kernels = table("kernel_details");
  ASSERT_EQ(kernels.rows(), 3U);
  EXPECT_EQ(kernels.integers("rank"), (Integers{5, 5, 5}));
  EXPECT_EQ(kernels.texts("name")[0], "MatMul1");
  EXPECT_EQ(kernels.texts("accelerator_core")[2], "HCCL");
  EXPECT_EQ(kernels.texts("accelerator_core")[1], "KERNEL_AIVEC");
  EXPECT_EQ(kernels.integers("start_time_ns")[0], 1'000'300'000);
  EXPECT_DOUBLE_EQ(kernels.numbers("duration_s")[1], 30e-6);
  EXPECT_TRUE(std::isnan(kernels.numbers("block_dim")[0]));  // the table has no such column
}

TEST(ProfileTableSample, KernelsOfTheDatabase) {
  const std::string path = trace::conformance_file("ascend/db_level1/rank0_ascend_pt");
  HEADRACE_NEEDS_FILE(path);
  const Table kernels = profile_table(find_profiles(path), "kernel_details");
  ASSERT_EQ(kernels.rows(), 191U);
  double sum = 0;
  for (std::size_t row = 0; row < 187; ++row) sum += kernels.numbers("duration_s")[row];
  EXPECT_NEAR(sum, 8903.431e-6, 1e-12);  // no two of them at once
  EXPECT_EQ(kernels.numbers("block_dim")[0], 32);
}

TEST(ProfileTableSample, KernelsAndOperators) {
  const std::string path = trace::conformance_file("ascend/text_level2/rank0_ascend_pt");
  HEADRACE_NEEDS_FILE(path);
  const auto profiles = find_profiles(path);
  const Table kernels = profile_table(profiles, "kernel_details");
  EXPECT_EQ(kernels.rows(), 191U);  // four are collectives
  EXPECT_EQ(kernels.integers("start_time_ns")[0], 1736412474730135222);
  double sum = 0;
  for (std::size_t row = 0; row < kernels.rows(); ++row)
    sum += kernels.texts("accelerator_core")[row] == "HCCL" ? 0 : kernels.numbers("duration_s")[row];
  EXPECT_NEAR(sum, 8868.24e-6, 0.03e-6);
  EXPECT_EQ(profile_table(profiles, "operator_details").rows(), 859U);
  EXPECT_EQ(profile_table(profiles, "op_statistic").rows(), 33U);
  EXPECT_DOUBLE_EQ(profile_table(profiles, "step_trace_time").numbers("free_s")[0], 25032.619e-6);
  EXPECT_EQ(profile_tables(profiles),
            (std::vector<std::string>{"communication", "communication_bandwidth", "communication_matrix",
                                      "kernel_details", "memory_record", "npu_module_mem", "op_statistic",
                                      "operator_details", "operator_memory", "step_trace_time"}));
}

constexpr const char* kMemoryDatabase = R"sql(
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO STRING_IDS VALUES (1,'aten::mm'),(2,'PTA'),(3,'app'),(4,'aclrtMalloc'),(5,'read'),(6,'launch');
CREATE TABLE ENUM_MODULE (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_MODULE VALUES (0,'SLOG'),(7,'RUNTIME');
CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_API_TYPE VALUES (20000,'acl'),(10000,'node');
CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER);
INSERT INTO CANN_API VALUES (1000,2000,20000,1,1,4),(3000,6000,20000,1,2,4),(1000,1500,10000,1,3,6),(9,1,10000,1,4,6);
CREATE TABLE MEMORY_RECORD (component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER,
  totalActive INTEGER, streamPtr INTEGER, deviceId INTEGER);
INSERT INTO MEMORY_RECORD VALUES (2,1000,1048576,2097152,524288,77,0);
CREATE TABLE NPU_MEM (type INTEGER, ddr NUMERIC, hbm NUMERIC, timestampNs INTEGER, deviceId INTEGER);
INSERT INTO NPU_MEM VALUES (3,0,3145728,900,0);
CREATE TABLE OP_MEMORY (name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, duration INTEGER);
INSERT INTO OP_MEMORY VALUES (1,2048,100,NULL,NULL),(1,512,200,1200,1000);
CREATE TABLE NPU_MODULE_MEM (moduleId INTEGER, timestampNs INTEGER, totalReserved NUMERIC, deviceId INTEGER);
INSERT INTO NPU_MODULE_MEM VALUES (7,500,1048576,0);
CREATE TABLE AICORE_FREQ (deviceId INTEGER, timestampNs NUMERIC, freq INTEGER);
INSERT INTO AICORE_FREQ VALUES (0,10,1800),(0,20,900);
CREATE TABLE HBM (deviceId INTEGER, timestampNs INTEGER, bandwidth NUMERIC, hbmId INTEGER, type INTEGER);
INSERT INTO HBM VALUES (0,10,2097152,1,5),(0,20,NULL,1,5);
)sql";

TEST_F(ProfileTable, TablesOfADatabaseAreCalledAsInTheCsvFiles) {
  const trace::ascend::DatabaseFile file(kMemoryDatabase);
  write(5, "x.csv", "a\n1\n");
  fs::copy_file(file.path(), root_ / "rank5_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_5.db");
  const auto profiles = find_profiles(root_.string());
  const std::vector<std::string> names = profile_tables(profiles);
  for (const char* name : {"api_statistic", "counters", "memory_record", "npu_module_mem", "operator_memory"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;

  const Table calls = profile_table(profiles, "api_statistic");
  ASSERT_EQ(calls.rows(), 2U) << "a call that ends before it begins is none";
  EXPECT_EQ(calls.texts("level")[1], "acl");
  EXPECT_EQ(calls.texts("api_name")[1], "aclrtMalloc");
  EXPECT_EQ(calls.integers("count"), (Integers{1, 2}));
  EXPECT_DOUBLE_EQ(calls.numbers("time_s")[1], 4e-6);
  EXPECT_DOUBLE_EQ(calls.numbers("avg_s")[1], 2e-6);
  EXPECT_DOUBLE_EQ(calls.numbers("min_s")[1], 1e-6);
  EXPECT_DOUBLE_EQ(calls.numbers("max_s")[1], 3e-6);
  EXPECT_DOUBLE_EQ(calls.numbers("variance")[1], 1) << "us^2";

  const Table memory = profile_table(profiles, "memory_record");
  EXPECT_EQ(memory.texts("component")[0], "APP");
  EXPECT_DOUBLE_EQ(memory.numbers("total_reserved_mb")[0], 3);
  EXPECT_TRUE(std::isnan(memory.numbers("total_allocated_mb")[0]));
  EXPECT_EQ(memory.texts("component")[1], "PTA");
  EXPECT_DOUBLE_EQ(memory.numbers("total_active_mb")[1], 0.5);
  EXPECT_EQ(memory.integers("timestamp_ns"), (Integers{900, 1000}));
  EXPECT_EQ(memory.texts("device_type")[1], "NPU:0");

  const Table blocks = profile_table(profiles, "operator_memory");
  EXPECT_EQ(blocks.numbers("size_kb"), (Numbers{2, 0.5}));
  EXPECT_EQ(blocks.integers("release_time_ns"), (Integers{-1, 1200})) << "-1: never freed";
  EXPECT_DOUBLE_EQ(blocks.numbers("duration_s")[1], 1e-6);
  EXPECT_TRUE(std::isnan(blocks.numbers("release_total_active_mb")[1])) << "a column that is missing";

  const Table modules = profile_table(profiles, "npu_module_mem");
  EXPECT_EQ(modules.texts("component")[0], "RUNTIME");
  EXPECT_DOUBLE_EQ(modules.numbers("total_reserved_mb")[0], 1);

  const Table counters = profile_table(profiles, "counters");
  ASSERT_EQ(counters.rows(), 6U);
  EXPECT_EQ(counters.texts("counter")[0], "AI Core Freq");
  EXPECT_EQ(counters.texts("unit")[0], "MHz");
  EXPECT_EQ(counters.numbers("value")[1], 900);
  EXPECT_EQ(counters.texts("counter")[2], "HBM 1/Read");
  EXPECT_DOUBLE_EQ(counters.numbers("value")[2], 2);
}

TEST(ProfileTableSample, ColumnsOfDatabasesAreThoseOfTheCsvFiles) {
  const std::string text = trace::conformance_file("ascend/text_level2");
  const std::string database = trace::conformance_file("ascend/db_level1");
  HEADRACE_NEEDS_FILE(text);
  HEADRACE_NEEDS_FILE(database);
  for (const char* name : {"memory_record", "operator_memory", "npu_module_mem"}) {
    const Table csv = profile_table(find_profiles(text), name);
    const Table stored = profile_table(find_profiles(database), name);
    ASSERT_EQ(csv.columns().size(), stored.columns().size()) << name;
    for (std::size_t i = 0; i < csv.columns().size(); ++i) {
      EXPECT_EQ(csv.columns()[i].name, stored.columns()[i].name) << name;
      EXPECT_EQ(csv.columns()[i].values.index(), stored.columns()[i].values.index())
          << name << " " << csv.columns()[i].name;
    }
    EXPECT_GT(stored.rows(), 100U);
  }
}

}  // namespace
}  // namespace headrace::analysis::device
