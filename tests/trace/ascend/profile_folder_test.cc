// Folders of Ascend profiles: which are some, whose they are, and which file of them is read.
#include "headrace/trace/ascend/profile_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace headrace::trace::ascend {
namespace {

namespace fs = std::filesystem;

class ProfileFolders : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("profiles-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text = "[]") {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  fs::path root_;
};

TEST_F(ProfileFolders, RankIsOfTheFileName) {
  write("a_ascend_pt/profiler_info_12.json", "{}");
  write("a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json");
  write("b_ascend_ms/profiler_info_3.json", "{}");
  write("b_ascend_ms/ASCEND_PROFILER_OUTPUT/ascend_mindspore_profiler_3.db");
  const auto found = find_profiles(root_.string());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_EQ(found[1].rank, 12);
  EXPECT_TRUE(found[0].events_file().ends_with("ascend_mindspore_profiler_3.db"));
  EXPECT_TRUE(found[1].events_file().ends_with("trace_view.json"));
}

TEST_F(ProfileFolders, EveryLevelFindsTheSameProfile) {
  write("job/node0/a_ascend_pt/profiler_info.json", R"({"rank_id": "5"})");
  write("job/node0/a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json");
  const std::string folder = (root_ / "job/node0/a_ascend_pt").string();
  for (const std::string& path :
       {root_.string() + "/job", folder, folder + "/", folder + "/ASCEND_PROFILER_OUTPUT"}) {
    const auto found = find_profiles(path);
    ASSERT_EQ(found.size(), 1U) << path;
    EXPECT_EQ(found[0].path, folder);
    EXPECT_EQ(found[0].rank, 5);
  }
  const auto of_file = profile_of(folder + "/ASCEND_PROFILER_OUTPUT/trace_view.json");
  ASSERT_TRUE(of_file.has_value());
  EXPECT_EQ(of_file->path, folder);
}

TEST_F(ProfileFolders, RankThatNothingSaysIsUnknown) {
  write("a_ascend_pt/profiler_info.json", R"({"rank_id": -1})");
  write("a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json");
  write("b_ascend_pt/profiler_info.json", "{damaged");
  write("b_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler.db");
  for (const ProfileFolder& profile : find_profiles(root_.string())) EXPECT_FALSE(profile.rank.has_value());
}

TEST_F(ProfileFolders, JsonIsReadBeforeTheDatabase) {
  write("a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json");
  write("a_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_7.db");
  write("a_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db");
  const auto found = find_profiles(root_.string());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 7);
  EXPECT_EQ(found[0].events_file(), found[0].trace_view);
  EXPECT_TRUE(found[0].analysis_database.ends_with("analysis.db"));
}

TEST_F(ProfileFolders, OtherFoldersAreNone) {
  write("traces/rank0.json");
  EXPECT_TRUE(find_profiles(root_.string()).empty());
  EXPECT_TRUE(find_profiles((root_ / "nowhere").string()).empty());
  EXPECT_FALSE(profile_of((root_ / "traces/rank0.json").string()).has_value());
}

}  // namespace
}  // namespace headrace::trace::ascend
