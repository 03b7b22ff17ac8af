#include "headrace/trace/process_groups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace headrace::trace {
namespace {

using Ranks = std::vector<std::int64_t>;

TEST(ProcessGroups, AreReadFromATrace) {
  TraceFile file;
  file.metadata.emplace_back("distributedInfo",
                             R"({"backend": "nccl", "rank": 5, "world_size": 8, "pg_config": [
    {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 8, "ranks": []},
    {"pg_name": "3", "pg_desc": "mesh_pp", "pg_size": 2, "ranks": [1, 5]},
    {"pg_name": "4", "pg_desc": "mesh_dp", "group_size": 4, "ranks": [4, 5, 6, 7]},
    {"pg_name": "5", "ranks": ["1", 5]}, {"ranks": [1]}, 7]})");
  const std::vector<ProcessGroup> groups = process_groups(file);
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[0].ranks, (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(groups[1].description, "mesh_pp");
  EXPECT_EQ(groups[1].ranks, (Ranks{1, 5}));
  EXPECT_TRUE(groups[3].ranks.empty());
  const std::vector<ParallelPlace> places = places_of(groups, 5);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].role, "pipeline");
  EXPECT_EQ(places[0].index, 1);
  EXPECT_EQ(places[0].size, 2);
  EXPECT_EQ(places[1].role, "data");
  EXPECT_EQ(places[1].index, 1);
}

TEST(ProcessGroups, OfOtherShapesAreNone) {
  for (const char* info :
       {"", "[]", "{}", R"({"pg_config": 3})", R"({"pg_config": {"a": []}})", "{\"pg_config\": ["}) {
    TraceFile file;
    file.metadata.emplace_back("distributedInfo", info);
    EXPECT_TRUE(process_groups(file).empty()) << info;
  }
  // A size alone allocates nothing.
  TraceFile file;
  file.metadata.emplace_back(
      "distributedInfo",
      R"({"world_size": 4000000000, "pg_config": [{"pg_name": "0", "pg_size": 4000000000}]})");
  ASSERT_EQ(process_groups(file).size(), 1U);
  EXPECT_TRUE(process_groups(file)[0].ranks.empty());
}

TEST(ProcessGroups, ADescriptionOfSeveralRolesIsOfNone) {
  const auto role = [](const char* description) {
    const std::vector<ParallelPlace> places = places_of({{"1", description, {0, 1}}}, 0);
    return places.empty() ? std::string() : places[0].role;
  };
  EXPECT_EQ(role("PIPELINE_MODEL_PARALLEL_GROUP"), "pipeline");
  EXPECT_EQ(role("TENSOR_MODEL_PARALLEL_GROUP"), "tensor");
  EXPECT_EQ(role("mesh_dp_shard"), "data");
  EXPECT_EQ(role("dp_cp"), "");
  EXPECT_EQ(role("POSITION_EMBEDDING_GROUP"), "");
  EXPECT_EQ(role("default_pg"), "");
  EXPECT_TRUE(places_of({{"1", "pp", {0, 1}}}, 7).empty());
}

TEST(ProcessGroups, AreReadFromAProfile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "process_groups_metadata.json";
  std::ofstream(path)
      << R"({"parallel_group_info": {"123": {"group_name": "pp", "group_rank": 1, "global_ranks": [0, 4]},
                             "456": {"group_name": "tp", "global_ranks": [4, 5, -6]}, "7": 1}})";
  ascend::ProfileFolder profile;
  EXPECT_TRUE(process_groups(profile).empty());
  profile.metadata = path.string();
  const std::vector<ProcessGroup> groups = process_groups(profile);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "123");
  EXPECT_EQ(groups[0].ranks, (Ranks{0, 4}));
  EXPECT_TRUE(groups[1].ranks.empty());
  std::ofstream(path) << "{\"parallel_group_info\"";
  EXPECT_TRUE(process_groups(profile).empty());
  std::filesystem::remove(path);
}

TEST(ProcessGroups, ListsInEventsMayBeShortened) {
  EXPECT_EQ(ranks_in("[0, 8, 16]"), (Ranks{0, 8, 16}));
  EXPECT_EQ(ranks_in("[3]"), (Ranks{3}));
  for (const char* list :
       {"", "[", "[]", "0, 1", "[0, 1, ..., 511]", "[-1]", "[0,,1]", "[99999999999999999999]"})
    EXPECT_TRUE(ranks_in(list).empty()) << list;
}

}  // namespace
}  // namespace headrace::trace
