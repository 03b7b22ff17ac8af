#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/profile/run_folder.h"
#include "headrace/profile/session.h"

namespace headrace::profile {
namespace {

/// The environment of a job that nobody named, whatever this test runs under.
class RunName : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.push_back(value == nullptr ? std::string("\x01") : std::string(value));
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      before_[i] == "\x01" ? unsetenv(kNames[i]) : setenv(kNames[i], before_[i].c_str(), 1);
    }
  }
  static constexpr const char* kNames[] = {
      "HEADRACE_DIR", "TORCHELASTIC_RUN_ID",  "SLURM_JOB_ID", "MASTER_ADDR",   "MASTER_PORT",  "RANK",
      "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK_ID",      "MS_SCHED_HOST", "MS_SCHED_PORT"};
  std::vector<std::string> before_;
};

TEST_F(RunName, IsWhatAllRanksOfAJobShare) {
  setenv("MS_SCHED_HOST", "node-1", 1);
  setenv("MS_SCHED_PORT", "8118", 1);
  EXPECT_EQ(default_run_folder(), "headrace-runs/node-1-8118");
  setenv("MASTER_ADDR", "node-3", 1);
  setenv("MASTER_PORT", "29500", 1);
  EXPECT_EQ(default_run_folder(), "headrace-runs/node-3-29500");
  setenv("TORCHELASTIC_RUN_ID", "none", 1);
  EXPECT_EQ(default_run_folder(), "headrace-runs/node-3-29500") << "torchrun's default tells nothing";
  setenv("SLURM_JOB_ID", "4711", 1);
  EXPECT_EQ(default_run_folder(), "headrace-runs/slurm-4711");
  setenv("TORCHELASTIC_RUN_ID", "job-7", 1);
  EXPECT_EQ(default_run_folder(), "headrace-runs/job-7");
  setenv("HEADRACE_DIR", "/data/my run", 1);
  EXPECT_EQ(default_run_folder(), "/data/my run") << "taken as it is";
}

TEST_F(RunName, IsOnePathComponent) {
  setenv("TORCHELASTIC_RUN_ID", "../../etc/passwd\nx y", 1);
  const std::string folder = default_run_folder();
  EXPECT_EQ(folder, "headrace-runs/run-..-..-etc-passwd-x-y");
  for (const char* dots : {".", "..", "..."}) {
    setenv("TORCHELASTIC_RUN_ID", dots, 1);
    EXPECT_NE(default_run_folder(), std::string("headrace-runs/") + dots) << "would be another folder";
  }
  setenv("TORCHELASTIC_RUN_ID", std::string(10'000, 'x').c_str(), 1);
  EXPECT_LE(default_run_folder().size(), 200U);
}

TEST_F(RunName, TellsRunsApartWhereNothingElseDoes) {
  const std::string folder = default_run_folder();
  EXPECT_EQ(folder.rfind("headrace-runs/", 0), 0U);
  EXPECT_NE(folder.find(std::to_string(getpid())), std::string::npos);
}

TEST_F(RunName, RankComesFromTheLauncher) {
  EXPECT_EQ(default_rank(), 0);
  setenv("RANK_ID", "4", 1);
  EXPECT_EQ(default_rank(), 4) << "MindSpore, and Ascend's launchers";
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  EXPECT_EQ(default_rank(), 5);
  setenv("SLURM_PROCID", "6", 1);
  EXPECT_EQ(default_rank(), 6);
  setenv("RANK", "7", 1);
  EXPECT_EQ(default_rank(), 7);
  for (const char* nonsense : {"seven", "-1", "7x", "99999999999999999999"}) {
    setenv("RANK", nonsense, 1);
    EXPECT_EQ(default_rank(), 6) << nonsense << ": the next variable counts";
  }
}

}  // namespace
}  // namespace headrace::profile
