#include "headrace/profile/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "headrace/profile/errors.h"
#include "headrace/profile/live_pointer.h"
#include "headrace/profile/orphans.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/segment.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/session.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

/// A process that recorded into `run` and was killed. Returns where its live segment lies.
std::string killed_recording(const ScratchFolder& folder, const std::string& run) {
  const pid_t child = in_child([&] {
    const auto session = Session::open({run, 0});
    write_bytes(folder / "path", session->live_path());
    session->operator_id({.name = "decode"});
    metrics::WorkerCell* worker = session->claim_worker(metrics::Clock::now_ns());
    session->claim_cell(*worker, 0, metrics::Place::worker, false)->items.store(12345);
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
  const std::string live = read_bytes(folder / "path");
  EXPECT_TRUE(fs::exists(live));
  return live;
}

TEST(RunFolder, IsMadePrivateWithItsParents) {
  const ScratchFolder folder;
  EXPECT_EQ(make_run_folder(folder / "a/b/run"), "");
  struct stat info{};
  ASSERT_EQ(stat((folder / "a/b/run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  EXPECT_EQ(make_run_folder(folder / "a/b/run"), "") << "several ranks make the same folder";
}

TEST(RunFolder, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  const ScratchFolder folder;
  ASSERT_EQ(make_run_folder(folder / "theirs"), "");
  ASSERT_EQ(chmod((folder / "theirs").c_str(), 0777), 0);
  ASSERT_EQ(chown((folder / "theirs").c_str(), 65534, 65534), 0);
  EXPECT_NE(make_run_folder(folder / "theirs").find("another user"), std::string::npos);
}

TEST(RunFolder, SaysWhyItCannotBeMade) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "x");
  EXPECT_NE(make_run_folder(folder / "file"), "");
  EXPECT_NE(make_run_folder(folder / "file/below"), "");
  EXPECT_NE(make_run_folder("/proc/headrace"), "");
}

TEST(RunFolder, GivesEveryProcessAName) {
  const ScratchFolder folder;
  EXPECT_EQ(free_copy_path(folder.path(), 2), folder / "rank2.hrseg");
  EXPECT_EQ(free_copy_path(folder.path(), 2), folder / "rank2.2.hrseg") << "the first name is reserved";
  EXPECT_EQ(free_copy_path(folder.path(), 3), folder / "rank3.hrseg");
  write_bytes(folder / "rank4.hrseg", "an earlier run");
  EXPECT_EQ(free_copy_path(folder.path(), 4), folder / "rank4.2.hrseg");
}

TEST(RunFolder, SharedMemoryIsPrivate) {
  const std::string first = shared_memory_path();
  const std::string second = shared_memory_path();
  ASSERT_NE(first, "");
  EXPECT_NE(first, second);
  struct stat info{};
  ASSERT_EQ(stat(fs::path(first).parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  EXPECT_EQ(info.st_uid, geteuid());
}

TEST(RunFolder, RefusesWhatIsNone) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "x");
  EXPECT_THROW(find_segments(folder / "missing"), Error);
  EXPECT_THROW(find_segments(folder / "file"), Error);
}

TEST(RunFolder, IsEmptyWhereNothingOfOursLies) {
  const ScratchFolder folder;
  EXPECT_TRUE(find_segments(folder.path()).empty());
  for (const char* name : {"events.out.tfevents.1", "rank", "rankings.hrseg.txt", "rank0.json", "config.yaml",
                           "rank1.hrseg.tmp77", "rankx.hrseg", "rank-2.hrseg"}) {
    write_bytes(folder / name, "somebody else's");
  }
  fs::create_directory(folder / "checkpoints");
  EXPECT_TRUE(find_segments(folder.path()).empty());
}

TEST(RunFolder, ListsRanksInOrder) {
  const ScratchFolder folder;
  for (const int rank : {10, 2, 0}) {
    Segment::create({"", ""}, rank)->copy_to(folder / "rank" + std::to_string(rank) + ".hrseg");
  }
  std::vector<int> ranks;
  for (const RunSegment& segment : find_segments(folder.path())) {
    ranks.push_back(segment.rank);
    EXPECT_FALSE(segment.live);
    EXPECT_FALSE(segment.running);
    EXPECT_EQ(segment.path, segment.copy_path);
  }
  EXPECT_EQ(ranks, (std::vector<int>{0, 2, 10}));
}

TEST(RunFolder, ReadsARunningOwnersLiveSegment) {
  const ScratchFolder folder;
  const auto session = Session::open({folder.path(), 1});
  const auto segments = find_segments(folder.path());
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_TRUE(segments[0].live);
  EXPECT_TRUE(segments[0].running);
  EXPECT_EQ(segments[0].path, session->live_path());
  EXPECT_EQ(segments[0].rank, 1);
  EXPECT_TRUE(fs::exists(session->live_path())) << "looking changes nothing";
}

/// kill -9 of the trainer: the live segment in shared memory is all there is, and is read where it lies.
TEST(RunFolder, ReadsWhatADeadOwnerLeftAndChangesNothing) {
  const ScratchFolder folder;
  const std::string live = killed_recording(folder, folder / "run");
  for (int time = 0; time < 2; ++time) {
    const auto segments = find_segments(folder / "run");
    ASSERT_EQ(segments.size(), 1U);
    EXPECT_TRUE(segments[0].live);
    EXPECT_FALSE(segments[0].running);
    EXPECT_EQ(segments[0].path, live);
    SegmentImage image;
    image.read_file(segments[0].path);
    EXPECT_EQ(image.cells()[0].items.load(), 12345U);
  }
  EXPECT_TRUE(fs::exists(live));
  collect_orphans("");
}

TEST(RunFolder, BelievesNoPointerToAnotherRun) {
  const ScratchFolder folder;
  const std::string live = killed_recording(folder, folder / "run");
  fs::create_directory(folder / "crafted");
  LivePointer pointer = *read_live_pointer(folder / "run/rank0.hrseg");
  pointer.identity ^= 1;
  ASSERT_EQ(write_live_pointer(folder / "crafted/rank0.hrseg", pointer), "");
  write_bytes(folder / "crafted/rank1.live", live + "\n");
  EXPECT_TRUE(find_segments(folder / "crafted").empty());
  EXPECT_TRUE(fs::exists(live));
  EXPECT_EQ(find_segments(folder / "run").size(), 1U) << "it is still where it belongs";
  collect_orphans("");
}

TEST(RunFolder, FindsTheSegmentWhereThePointerCouldNotBeWritten) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  remove_live_pointer(folder / "run/rank0.hrseg");
  const auto segments = find_segments(folder / "run");
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].path, session->live_path());
  EXPECT_TRUE(segments[0].running);
}

TEST(RunFolder, SaysWhatIsMissing) {
  const ScratchFolder folder;
  EXPECT_TRUE(missing_recordings(folder.path()).empty());
  const pid_t child = in_child([] {});
  LivePointer pointer{
      .path = "", .identity = 1, .owner_pid = child, .owner_start = 1, .boot = boot_identity()};
  wait_for(child);
  ASSERT_EQ(write_live_pointer(folder / "rank3.hrseg", pointer), "");
  auto lines = missing_recordings(folder.path());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("rank 3"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("in memory only"), std::string::npos) << lines[0];
}

/// On a shared file system the owner may be alive on a machine that this one cannot ask.
TEST(RunFolder, LeavesTheLiveSegmentOfAnotherMachineAlone) {
  const ScratchFolder folder;
  const auto segment = Segment::create({folder / "live.hrseg", ""}, 0);
  SegmentHeader& header = segment->header();
  header.boot += 1;
  header.owner_pid = 999'999;
  header.checksum = header_checksum(header);
  write_live_pointer(folder / "rank0.hrseg", LivePointer::to(header, folder / "live.hrseg"));
  const auto segments = find_segments(folder.path());
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_TRUE(fs::exists(folder / "live.hrseg"));
  EXPECT_TRUE(segments[0].live);
  EXPECT_EQ(segments[0].path, folder / "live.hrseg");
}

TEST(RunFolder, FallsBackToTheCopyWhereThePointerLeadsNowhere) {
  const ScratchFolder folder;
  Segment::create({"", ""}, 0)->copy_to(folder / "rank0.hrseg");
  for (const std::string target : {"", "/no/such/file", "\n\n", "/dev/zero", "rank0.hrseg\ngarbage"}) {
    write_bytes(folder / "rank0.live", target);
    const auto segments = find_segments(folder.path());
    ASSERT_EQ(segments.size(), 1U);
    EXPECT_EQ(segments[0].path, folder / "rank0.hrseg");
    EXPECT_FALSE(segments[0].running);
  }
  fs::remove(folder / "rank0.live");
  ASSERT_EQ(mkfifo((folder / "rank0.live").c_str(), 0600), 0);
  EXPECT_EQ(find_segments(folder.path()).size(), 1U) << "a FIFO is not waited for";
}

TEST(RunFolder, NeverRemovesWhatIsNoSegment) {
  const ScratchFolder folder;
  write_bytes(folder / "thesis.txt", "important");
  write_live_pointer(folder / "rank0.hrseg", {.path = folder / "thesis.txt", .identity = 1});
  EXPECT_TRUE(find_segments(folder.path()).empty());
  collect_orphans(folder.path());
  EXPECT_EQ(read_bytes(folder / "thesis.txt"), "important");
}

TEST(RunFolder, PointerIsWrittenReadAndRemoved) {
  const ScratchFolder folder;
  const LivePointer pointer{"/dev/shm/x", 0xfedcba9876543210, 12, 34, 0x8000000000000001};
  ASSERT_EQ(write_live_pointer(folder / "rank0.hrseg", pointer), "");
  const auto read = read_live_pointer(folder / "rank0.hrseg");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->path, pointer.path);
  EXPECT_EQ(read->identity, pointer.identity);
  EXPECT_EQ(read->owner_pid, pointer.owner_pid);
  EXPECT_EQ(read->owner_start, pointer.owner_start);
  EXPECT_EQ(read->boot, pointer.boot);
  remove_live_pointer(folder / "rank0.hrseg");
  EXPECT_FALSE(fs::exists(folder / "rank0.live"));
  remove_live_pointer(folder / "rank0.hrseg");
  EXPECT_NE(write_live_pointer(folder / "no/rank0.hrseg", pointer), "");
}

}  // namespace
}  // namespace headrace::profile
