#include "headrace/profile/orphans.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <csignal>
#include <filesystem>

#include "headrace/profile/live_pointer.h"
#include "headrace/profile/private_folder.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/session.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

/// Records into `run` in a process that is killed. Returns where its live segment lies.
std::string killed(const ScratchFolder& folder, const std::string& run) {
  const pid_t child = in_child([&] {
    const auto session = Session::open({run, 0});
    session->operator_id({.name = "decode"});
    write_bytes(folder / "path", session->live_path());
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
  return read_bytes(folder / "path");
}

void make_old(const std::string& path) {
  const utimbuf long_ago{1'000'000'000, 1'000'000'000};
  ASSERT_EQ(utime(path.c_str(), &long_ago), 0);
}

TEST(Orphans, BecomeCopiesInTheirRuns) {
  const ScratchFolder folder;
  const std::string live = killed(folder, folder / "run");
  ASSERT_TRUE(fs::exists(live));
  collect_orphans("");
  EXPECT_FALSE(fs::exists(live));
  EXPECT_FALSE(fs::exists(live + std::string(kHomeSuffix)));
  EXPECT_FALSE(fs::exists(folder / "run/rank0.live"));
  SegmentImage image;
  image.read_file(folder / "run/rank0.hrseg");
  EXPECT_EQ(image.operators()[0].name.view(), "decode");
}

TEST(Orphans, ThatAreFoundCanBeReadWhenAnotherProcessHasBroughtThemHome) {
  const ScratchFolder folder;
  const std::string live = killed(folder, folder / "run");
  const auto found = find_segments(folder / "run");
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].path, live);
  wait_for(in_child([] { collect_orphans(""); }));
  ASSERT_FALSE(fs::exists(live));
  SegmentImage image;
  image.read_file(found[0].path);
  EXPECT_EQ(image.operators()[0].name.view(), "decode");
}

TEST(Orphans, WhoseRunIsGoneAreRemoved) {
  const ScratchFolder folder;
  std::vector<std::string> live;
  for (int i = 0; i < 20; ++i) live.push_back(killed(folder, folder / ("run" + std::to_string(i))));
  for (int i = 0; i < 20; ++i) fs::remove_all(folder / ("run" + std::to_string(i)));
  collect_orphans("");
  for (const std::string& path : live) EXPECT_FALSE(fs::exists(path)) << path;
}

TEST(Orphans, ThatNeverHadARunAreRemoved) {
  const ScratchFolder folder;
  const std::string live = killed(folder, "");
  ASSERT_TRUE(fs::exists(live));
  collect_orphans("");
  EXPECT_FALSE(fs::exists(live));
}

TEST(Orphans, OfRunningProcessesAreNone) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  collect_orphans(folder / "run");
  EXPECT_TRUE(fs::exists(session->live_path()));
  EXPECT_TRUE(fs::exists(folder / "run/rank0.live"));
}

/// What stands beside a segment names any file of the user: nothing outside the segment's own run is written.
TEST(Orphans, ReplaceNothingElse) {
  const ScratchFolder folder;
  write_bytes(folder / "bashrc", "the user's");
  write_bytes(folder / "rank7.hrseg", "the user's");
  for (const std::string& target : {folder / "bashrc", folder / "rank7.hrseg"}) {
    const std::string live = killed(folder, folder / "run");
    write_bytes(live + std::string(kHomeSuffix), target + "\n");
    collect_orphans("");
    EXPECT_EQ(read_bytes(target), "the user's");
    ASSERT_TRUE(fs::exists(live)) << "it stays a day";
    make_old(live);
    collect_orphans("");
    EXPECT_FALSE(fs::exists(live));
    fs::remove_all(folder / "run");
  }
}

TEST(Orphans, LinksAreNotFollowed) {
  const ScratchFolder folder;
  write_bytes(folder / "secret", "the user's");
  const std::string link = shared_memory_folder() + "/99999999-1-0.hrseg";
  ASSERT_NE(shared_memory_path(), "");
  fs::remove(link);
  fs::create_symlink(folder / "secret", link);
  fs::create_directory(folder / "run");
  write_bytes(link + std::string(kHomeSuffix), folder / "run/rank0.hrseg\n");
  collect_orphans("");
  EXPECT_TRUE(fs::is_empty(folder / "run"));
  EXPECT_EQ(read_bytes(folder / "secret"), "the user's");
  fs::remove(link);
  fs::remove(link + std::string(kHomeSuffix));
}

TEST(Orphans, StayWhereTheRunFolderCannotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const ScratchFolder folder;
  const std::string live = killed(folder, folder / "run");
  fs::permissions(folder / "run", fs::perms::owner_read | fs::perms::owner_exec);
  collect_orphans("");
  EXPECT_TRUE(fs::exists(live));
  fs::permissions(folder / "run", fs::perms::owner_all);
  collect_orphans("");
  EXPECT_FALSE(fs::exists(live));
}

TEST(Orphans, InARunFolderBecomeCopiesThere) {
  const ScratchFolder folder;
  const std::string copy = folder / "rank0.hrseg";
  const std::string live = copy + std::string(kLiveSegmentSuffix);
  const pid_t child = in_child([&] {
    const auto segment = Segment::create({"", live}, 0);
    write_live_pointer(copy, LivePointer::to(segment->header(), live));
    write_bytes(copy + ".AbCdEf", "half a copy");
    raise(SIGKILL);
  });
  wait_for(child);
  make_old(copy + ".AbCdEf");
  ASSERT_TRUE(fs::exists(live));
  EXPECT_EQ(find_segments(folder.path()).size(), 1U);
  collect_orphans(folder.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_TRUE(fs::exists(copy));
}

TEST(PrivateFolder, RefusesWhatIsNotItsOwn) {
  const ScratchFolder folder;
  EXPECT_FALSE(PrivateFolder(folder / "missing", false).ok());
  EXPECT_TRUE(PrivateFolder(folder / "made", true).ok());
  write_bytes(folder / "file", "x");
  EXPECT_FALSE(PrivateFolder(folder / "file", true).ok());
  fs::create_symlink(folder / "made", folder / "link");
  EXPECT_FALSE(PrivateFolder(folder / "link", true).ok());
  if (geteuid() == 0) {
    fs::create_directory(folder / "nobodys");
    ASSERT_EQ(chown((folder / "nobodys").c_str(), 65534, 65534), 0);
    EXPECT_FALSE(PrivateFolder(folder / "nobodys", true).ok());
    const PrivateFolder own(folder / "made", false);
    write_bytes(folder / "made/theirs", "x");
    ASSERT_EQ(chown((folder / "made/theirs").c_str(), 65534, 65534), 0);
    EXPECT_EQ(own.open_file("theirs"), -1);
  }
}

TEST(PrivateFolder, OpensRegularFilesOnly) {
  const ScratchFolder folder;
  const PrivateFolder own(folder / "own", true);
  EXPECT_TRUE(own.write_text("note", "text\n"));
  EXPECT_EQ(own.read_line("note"), "text");
  fs::create_symlink(folder / "own/note", folder / "own/link");
  fs::create_hard_link(folder / "own/note", folder / "own/second-name");
  ASSERT_EQ(mkfifo((folder / "own/fifo").c_str(), 0600), 0);
  for (const char* name : {"link", "second-name", "note", "fifo", "missing", "."}) {
    EXPECT_EQ(own.open_file(name), -1) << name;
  }
  own.remove("second-name");
  EXPECT_EQ(own.read_line("note"), "text");
}

}  // namespace
}  // namespace headrace::profile
