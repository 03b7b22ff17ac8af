#include "headrace/profile/unnamed_runs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/profile/run_folder.h"
#include "headrace/profile/session.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

std::string numbered_run(const ScratchFolder& folder, int number) {
  return folder / ("headrace-runs/20260101-1200" + std::to_string(10 + number) + "-77");
}

TEST(UnnamedRuns, AreToldByTheirNames) {
  EXPECT_TRUE(is_unnamed_run("20260101-120000-1"));
  for (const char* name : {"20260101-120000", "20260101-120000-", "20260101-120000-1x",
                           "demo-20260101-120000-1", "slurm-1", "2026010a-120000-1", ""}) {
    EXPECT_FALSE(is_unnamed_run(name)) << name;
  }
}

TEST(UnnamedRuns, TheNewestAreKept) {
  const ScratchFolder folder;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(make_run_folder(numbered_run(folder, i)), "");
    write_bytes(numbered_run(folder, i) + "/rank0.hrseg", "a recording");
    if (i == 3) write_bytes(numbered_run(folder, i) + "/report.html", "the user's");
    if (i == 4) write_bytes(numbered_run(folder, i) + "/headrace-page.html", "ours");
  }
  ASSERT_EQ(make_run_folder(folder / "headrace-runs/slurm-5"), "");
  for (int i = 0; i < 30; ++i) EXPECT_EQ(fs::exists(numbered_run(folder, i)), i == 3 || i >= 10) << i;
  EXPECT_EQ(read_bytes(numbered_run(folder, 3) + "/rank0.hrseg"), "a recording");
  EXPECT_EQ(read_bytes(folder / "headrace-runs/.gitignore"), "*\n");
}

TEST(UnnamedRuns, ThatStillRecordAreKept) {
  const ScratchFolder folder;
  const auto session = Session::open({numbered_run(folder, 0), 0, true});
  for (int i = 1; i < 25; ++i) make_run_folder(numbered_run(folder, i));
  EXPECT_TRUE(fs::exists(numbered_run(folder, 0) + "/rank0.live"));
}

TEST(UnnamedRuns, FoldersElsewhereAreLeftAlone) {
  const ScratchFolder folder;
  ASSERT_EQ(make_run_folder(folder / "runs/20260101-120000-1"), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "runs"), {}), 1);
}

}  // namespace
}  // namespace headrace::profile
