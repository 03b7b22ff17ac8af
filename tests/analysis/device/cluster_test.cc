// Ranks against each other, from their own files and from the summary of the vendor's tool.
#include "headrace/analysis/device/cluster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../../src/analysis/device/slow_collectives.h"
#include "headrace/profile/errors.h"
#include "trace/ascend/small_database.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;

std::size_t row_where(const Table& table, const char* column, const std::string& text) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.texts(column)[row] == text) return row;
  }
  ADD_FAILURE() << "no row " << text;
  return 0;
}

trace::ascend::CommunicationTime operation(std::int64_t rank, const char* name, const char* group,
                                           double elapse_s, bool point_to_point = false) {
  trace::ascend::CommunicationTime made;
  made.of = {rank, "1", point_to_point, name, group};
  made.elapse_s = elapse_s;
  return made;
}

TEST(SlowRank, TheShortOneMadeTheOthersWait) {
  EXPECT_EQ(slow_rank_of(std::vector<RankDuration>{{0, 10}, {1, 10.1}, {2, 1}, {3, 10.2}, {4, 10.3}}), 2);
  EXPECT_EQ(slow_rank_of(std::vector<RankDuration>{{0, 10}, {1, 9}, {2, 8}, {3, 7}, {4, 6}}), std::nullopt);
  EXPECT_EQ(slow_rank_of(std::vector<RankDuration>{{0, 1}, {1, 10}, {2, 10}, {3, 10}}),
            std::nullopt);  // 2 values
  EXPECT_EQ(slow_rank_of(std::vector<RankDuration>{{0, 10}, {1, 9}}), 1);
  EXPECT_EQ(slow_rank_of(std::vector<RankDuration>{{0, 10}, {1, 9.6}}), std::nullopt);
  EXPECT_EQ(slow_rank_of(std::vector<RankDuration>{{0, 10}}), std::nullopt);
  EXPECT_EQ(slow_rank_of({}), std::nullopt);
}

TEST(SlowRank, OfManyRanks) {
  std::vector<RankDuration> durations;
  for (int rank = 0; rank < 35; ++rank) durations.emplace_back(rank, 10 + 0.01 * rank);
  EXPECT_EQ(slow_rank_of(durations), std::nullopt);
  durations[7].second = 2;
  EXPECT_EQ(slow_rank_of(durations), 7);
  for (int rank = 35; rank < 200; ++rank) durations.emplace_back(rank, 10 + 0.001 * rank);
  EXPECT_EQ(slow_rank_of(durations), 7);
}

TEST(Cluster, VotesAndGroupsThatAreCutOff) {
  ClusterData data;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "hcom_allReduce__1_" + std::to_string(i) + "_1";
    for (int rank = 0; rank < 5; ++rank)
      data.communication.times.push_back(operation(rank, name.c_str(), "a", rank == 3 ? 1 : 10 + 0.1 * rank));
  }
  data.communication.times.push_back(operation(0, "hcom_allReduce__2_0_1", "b", 1));
  data.communication.times.push_back(operation(1, "hcom_allReduce__2_0_1", "b", 2));
  data.communication.times.push_back(operation(1, "hcom_allReduce__2_1_1", "b", 2));
  data.communication.times.push_back(operation(0, "hcom_send__9_0_1", "a", 0.1));
  const Table votes = cluster_tables(data).slow_ranks;
  EXPECT_EQ(votes.integers("rank")[0], 3);
  EXPECT_EQ(votes.integers("slow_operations")[0], 3);
  EXPECT_EQ(votes.integers("operations")[0], 3);
  ASSERT_EQ(votes.notes.size(), 1U);
  EXPECT_NE(votes.notes[0].find("group b is left out"), std::string::npos);
}

TEST(Cluster, LinksThatStandOut) {
  ClusterData data;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "hcom_allGather__1_" + std::to_string(i) + "_1";
    data.communication.times.push_back(operation(0, name.c_str(), "a", i == 5 ? 9 : 1 + 0.001 * i));
    data.communication.times.push_back(operation(1, name.c_str(), "a", 20));
  }
  const Table links = cluster_tables(data).slow_links;
  ASSERT_EQ(links.rows(), 1U);
  EXPECT_EQ(links.texts("operation")[0], "hcom_allGather__1_5_1@a");
  EXPECT_EQ(links.texts("kind")[0], "allGather");
  EXPECT_EQ(links.texts("ranks")[0], "(0, 1)");
  EXPECT_DOUBLE_EQ(links.numbers("transfer_s")[0], 9);
  EXPECT_GT(links.numbers("deviations")[0], 3);
  const Table none = cluster_tables(ClusterData{}).slow_links;
  EXPECT_EQ(none.rows(), 0U);
  EXPECT_EQ(none.notes.size(), 1U);
}

class ClusterFolder : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("cluster-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  void write_rank(int rank, const std::string& communication, const std::string& matrix) {
    const std::string folder = "r" + std::to_string(rank) + "_ascend_pt/";
    write(folder + "profiler_info_" + std::to_string(rank) + ".json", "{}");
    write(folder + "ASCEND_PROFILER_OUTPUT/communication.json", communication);
    write(folder + "ASCEND_PROFILER_OUTPUT/communication_matrix.json", matrix);
    write(folder + "ASCEND_PROFILER_OUTPUT/step_trace_time.csv",
          "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n1," +
              std::to_string(100 + rank) + ",20,5,25,30,150,0\n");
  }
  fs::path root_;
};

TEST_F(ClusterFolder, PipelinesGiveStages) {
  // Ranks 0 and 2 are one pipeline, 1 and 3 another; 0 and 1 reduce together, and 2 and 3.
  const auto json = [](const char* pipeline, const char* stage) {
    return std::string(R"({"step1": {"p2p": {"hcom_send__1_0_1@)") + pipeline +
           R"(": {"Communication Time Info": {}}}, "collective": {"hcom_allReduce__2_0_1@)" + stage +
           R"(": {"Communication Time Info": {}}}}})";
  };
  const auto matrix = [](int local) {
    const std::string own = std::to_string(local);
    return R"json({"step1": {"p2p": {}, "collective": {"allreduce-total@s)json" + std::string("0") +
           R"json(": {")json" + own + "-" + own +
           R"json(": {"Transport Type": "LOCAL", "Transit Size(MB)": 1, "Transit Time(ms)": 1},
           ")json" +
           own + "-" + std::to_string(1 - local) +
           R"json(": {"Transport Type": "HCCS", "Transit Size(MB)": 30, "Transit Time(ms)": 2}}}}})json";
  };
  write_rank(0, json("p0", "s0"), "{}");
  write_rank(1, json("p1", "s0"), "{}");
  write_rank(2, json("p0", "s1"), matrix(0));
  write_rank(3, json("p1", "s1"), matrix(1));
  const auto profiles = trace::ascend::find_profiles(root_.string());
  ASSERT_EQ(profiles.size(), 4U);
  const ClusterData data = cluster_of({}, profiles);
  EXPECT_EQ(data.stages, (std::vector<std::vector<std::int64_t>>{{0, 1}, {2, 3}}));
  const ClusterTables tables = cluster_tables(data);
  ASSERT_EQ(tables.step_time.rows(), 6U);
  const std::size_t stage = row_where(tables.step_time, "index", "(2, 3)");
  EXPECT_DOUBLE_EQ(tables.step_time.numbers("computing_s")[stage], 103e-6);
  EXPECT_TRUE(std::isnan(tables.step_time.numbers("preparing_s")[stage]));
  ASSERT_EQ(tables.matrix.rows(), 4U);  // local ranks 0 and 1 of the group are 2 and 3
  EXPECT_EQ(tables.matrix.integers("source"), (Integers{2, 2, 3, 3}));
  EXPECT_EQ(tables.matrix.integers("target"), (Integers{2, 3, 2, 3}));
  EXPECT_DOUBLE_EQ(tables.matrix.numbers("bandwidth_gbps")[1], 15);
}

TEST_F(ClusterFolder, DamagedPartsOfASummaryAreSaid) {
  EXPECT_FALSE(has_cluster_summary(root_.string()));
  EXPECT_THROW(read_cluster_summary(root_.string()), FormatError);
  write("cluster_analysis_output/cluster_step_trace_time.csv",
        "Step,Type,Index,Computing,Free\n1,rank,0,10,5\n1,rank,1,20,5\n1,stage,\"(0, 1)\",20,5\n");
  write("cluster_analysis_output/cluster_communication.json", "{damaged");
  ASSERT_TRUE(has_cluster_summary(root_.string()));
  const ClusterData data = read_cluster_summary(root_.string());
  EXPECT_EQ(data.notes.size(), 2U);
  const ClusterTables tables = cluster_tables(data);
  EXPECT_EQ(tables.step_time.rows(), 3U);
  EXPECT_DOUBLE_EQ(tables.step_time.numbers("computing_s")[2], 20e-6);
}

constexpr const char* kClusterDatabase = R"sql(
CREATE TABLE CommunicationGroupMapping (type TEXT, rank_set TEXT, group_name TEXT);
INSERT INTO CommunicationGroupMapping VALUES ('collective','(0,1)','g'),('p2p','(0,1)','p');
CREATE TABLE ClusterStepTraceTime (step TEXT, type TEXT, "index" TEXT, computing NUMERIC, free NUMERIC,
  communication_not_overlapped NUMERIC);
INSERT INTO ClusterStepTraceTime VALUES ('1','rank','0',10,5,2),('1','rank','1',20,5.5,3),('1','stage','(0, 1)',20,5.5,3);
CREATE TABLE ClusterCommunicationTime (step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
  start_timestamp REAL, elapsed_time REAL, transit_time REAL, wait_time REAL);
INSERT INTO ClusterCommunicationTime VALUES ('step1',0,'hcom_allReduce__1_0_1','g',1000.5,2,1,0.5),
  ('step1',1,'hcom_send__1_0_1','p',1000.5,3,1,0.5);
CREATE TABLE ClusterCommunicationMatrix (step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank REAL,
  dst_rank REAL, transport_type TEXT, op_name TEXT, transit_size REAL, transit_time REAL, bandwidth REAL);
INSERT INTO ClusterCommunicationMatrix VALUES ('step1','allreduce-total','g',0.0,1.0,'HCCS','x',30,2,15);
)sql";

TEST_F(ClusterFolder, ADatabaseOfTheVendorsTool) {
  const trace::ascend::DatabaseFile file(kClusterDatabase, "cluster_analysis.db");
  write("cluster_analysis_output/unknown.txt", "");
  EXPECT_FALSE(has_cluster_summary(root_.string()));
  fs::copy_file(file.path(), root_ / "cluster_analysis_output/cluster_analysis.db");
  ASSERT_TRUE(has_cluster_summary(root_.string()));
  const ClusterData data = read_cluster_summary(root_.string());
  ASSERT_EQ(data.notes.size(), 2U);
  EXPECT_NE(data.notes[0].find("cluster_analysis.db"), std::string::npos) << "the source is said";
  EXPECT_NE(data.notes[1].find("no table ClusterCommunicationBandwidth"), std::string::npos);
  ASSERT_EQ(data.communication.times.size(), 2U);
  EXPECT_FALSE(data.communication.times[0].of.point_to_point);
  EXPECT_TRUE(data.communication.times[1].of.point_to_point);
  EXPECT_EQ(data.communication.times[0].start_ns, 1'000'500);
  EXPECT_EQ(data.communication.times[0].of.step, "1");
  const ClusterTables tables = cluster_tables(data);
  const std::size_t stage = row_where(tables.step_time, "index", "(0, 1)");
  EXPECT_DOUBLE_EQ(tables.step_time.numbers("computing_s")[stage], 20e-6);
  EXPECT_DOUBLE_EQ(tables.step_time.numbers("free_s")[0], 5e-6);
  EXPECT_TRUE(std::isnan(tables.step_time.numbers("preparing_s")[stage]));
  EXPECT_DOUBLE_EQ(tables.matrix.numbers("bandwidth_gbps")[0], 15);
}

TEST_F(ClusterFolder, ADamagedDatabaseIsSaid) {
  write("cluster_analysis.db", "SQLite format 3");
  EXPECT_THROW(read_cluster_summary(root_.string()), FormatError);
  const trace::ascend::DatabaseFile other("CREATE TABLE t (a);", "other.db");
  fs::copy_file(other.path(), root_ / "cluster_analysis.db", fs::copy_options::overwrite_existing);
  EXPECT_THROW(read_cluster_summary(root_.string()), FormatError);
}

TEST(ClusterSample, IsReproduced) {
  const std::string folder = trace::conformance_file("ascend/cluster_8rank");
  HEADRACE_NEEDS_FILE(folder);
  const ClusterTables tables = cluster_tables(read_cluster_summary(folder));
  ASSERT_EQ(tables.step_time.rows(), 9U);
  const std::size_t stage = row_where(tables.step_time, "type", "stage");
  EXPECT_EQ(tables.step_time.texts("index")[stage], "(0, 1, 2, 3, 4, 5, 6, 7)");
  const auto us = [&](const char* column) { return tables.step_time.numbers(column)[stage] * 1e6; };
  EXPECT_DOUBLE_EQ(us("computing_s"), 81662.19999999994);
  EXPECT_DOUBLE_EQ(us("communication_not_overlapped_s"), 756374.86);
  EXPECT_DOUBLE_EQ(us("free_s"), 1488610.0587500026);
  EXPECT_DOUBLE_EQ(us("stage_s"), 1754645.75);
  const auto gap = [&](const char* quantity) {
    return tables.gaps.numbers("gap")[row_where(tables.gaps, "quantity", quantity)];
  };
  EXPECT_NEAR(gap("communication_not_overlapped"), 0.622989, 1e-6);
  EXPECT_NEAR(gap("free"), 0.595773, 1e-6);
  EXPECT_NEAR(gap("computing"), 0.001585, 1e-6);
  EXPECT_EQ(tables.gaps.integers("slow_rank")[row_where(tables.gaps, "quantity", "free")], 1);
  EXPECT_EQ(
      tables.gaps.integers("slow_rank")[row_where(tables.gaps, "quantity", "communication_not_overlapped")],
      1);
  EXPECT_EQ(tables.gaps.integers("slow")[row_where(tables.gaps, "quantity", "computing")], 0);
  EXPECT_NEAR(tables.gaps.numbers("mean")[row_where(tables.gaps, "quantity", "SDMA")], 2.355, 0.0005);
}

}  // namespace
}  // namespace headrace::analysis::device
