#include "headrace/profile/segment.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "headrace/profile/errors.h"
#include "headrace/profile/registry.h"
#include "headrace/profile/segment_image.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

TEST(Segment, IsAPrivateFileThatTakesWhatIsUsed) {
  const ScratchFolder folder;
  const auto segment = Segment::create({folder / "a.hrseg", ""}, 3);
  EXPECT_EQ(segment->path(), folder / "a.hrseg");
  EXPECT_EQ(segment->problem(), "");
  EXPECT_EQ(segment->header().rank, 3);
  EXPECT_EQ(segment->header().owner_pid, getpid());
  struct stat info{};
  ASSERT_EQ(stat(segment->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(static_cast<std::size_t>(info.st_size), segment->size());
  EXPECT_LT(info.st_blocks * 512, info.st_size / 10) << "the tables that every run needs";
  const auto blocks = info.st_blocks;
  Registry registry(*segment);
  ASSERT_NE(registry.claim_worker(5), nullptr);
  ASSERT_EQ(stat(segment->path().c_str(), &info), 0);
  EXPECT_GT(info.st_blocks, blocks) << "a record has its pages before anything is written there";
}

TEST(Segment, NeverTouchesAFileThatExists) {
  const ScratchFolder folder;
  write_bytes(folder / "a.hrseg", "somebody's data");
  std::filesystem::create_symlink(folder / "nowhere", folder / "link.hrseg");
  for (const std::string taken : {"a.hrseg", "link.hrseg"}) {
    const auto segment = Segment::create({folder / taken, folder / "second-" + taken}, 0);
    EXPECT_EQ(segment->path(), folder / "second-" + taken);
    EXPECT_NE(segment->problem().find(taken), std::string::npos) << segment->problem();
  }
  EXPECT_EQ(read_bytes(folder / "a.hrseg"), "somebody's data");
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST(Segment, FallsBackToMemoryAndSaysWhy) {
  const ScratchFolder folder;
  const auto segment = Segment::create({folder / "no/such/folder.hrseg", "/proc/headrace.hrseg"}, 0);
  EXPECT_EQ(segment->path(), "");
  EXPECT_NE(segment->problem().find("no/such/folder.hrseg"), std::string::npos) << segment->problem();
  EXPECT_NE(segment->problem().find("/proc/headrace.hrseg"), std::string::npos) << segment->problem();
  Registry registry(*segment);
  EXPECT_EQ(registry.operator_id({.name = "decode"}), 0);
  SegmentImage image;
  image.read_memory(segment->data(), segment->size());
  EXPECT_EQ(image.operators()[0].name.view(), "decode");
  // Copies still go where there is room.
  EXPECT_EQ(segment->copy_to(folder / "copy.hrseg"), "");
}

/// Stands for a full disk, which would need a mount: a file must not grow to the size of a segment.
TEST(Segment, FallsBackToMemoryWhereTheFileMayNotGrow) {
  const ScratchFolder folder;
  expect_success(in_child([&] {
    const auto before = Segment::create({folder / "before.hrseg", ""}, 0);
    const rlimit limit{1 << 10, 1 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);  // would end this process
    const auto segment = Segment::create({folder / "a.hrseg", folder / "b.hrseg"}, 0);
    EXPECT_EQ(segment->path(), "");
    EXPECT_NE(segment->problem(), "");
    EXPECT_NE(before->copy_to(folder / "copy.hrseg"), "");
    segment->header().anchors.add_now();
  }));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.hrseg"));
  EXPECT_FALSE(std::filesystem::exists(folder / "copy.hrseg"));
}

TEST(Segment, CopyReadsBackEqualAndIsSmall) {
  const ScratchFolder folder;
  const auto segment = Segment::create({"", ""}, 1);
  Registry registry(*segment);
  const int op = registry.operator_id({.name = "decode", .kind = "map", .key = 7});
  const int queue = registry.queue_id("decoded", 16);
  registry.loader_id("train", op);
  metrics::WorkerCell* worker = registry.claim_worker(5);
  metrics::OperatorCell* cell = registry.claim_cell(*worker, op, metrics::Place::worker, false);
  cell->items.store(42);
  cell->windows.at(127, 1).store(99);
  segment->bins()[segment->queues()[queue].cell.first_bin.load() + 16].store(1234);
  segment->host().cores.store(2);

  ASSERT_EQ(segment->copy_to(folder / "copy.hrseg"), "");
  SegmentImage file, memory;
  file.read_file(folder / "copy.hrseg");
  memory.read_memory(segment->data(), segment->size());
  for (const SegmentImage* image : {&file, &memory}) {
    EXPECT_EQ(image->header().rank, 1);
    EXPECT_EQ(image->operators()[static_cast<std::size_t>(op)].name.view(), "decode");
    EXPECT_EQ(image->queues()[static_cast<std::size_t>(queue)].cell.capacity.load(), 16);
    EXPECT_EQ(image->loaders()[0].name.view(), "train");
    EXPECT_EQ(image->cells()[0].items.load(), 42U);
    EXPECT_EQ(image->cells()[0].windows.get(127, 1), 99);
    EXPECT_EQ(image->bins()[16].load(), 1234);
    EXPECT_EQ(image->host().cores.load(), 2U);
  }
  struct stat info{};
  ASSERT_EQ(stat((folder / "copy.hrseg").c_str(), &info), 0);
  EXPECT_LT(info.st_size, 64 << 10) << "what was never used takes no room";
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
      << "no file is left beside it";
}

/// Every table, byte by byte.
bool hold_the_same(const SegmentImage& a, const SegmentImage& b) {
  const auto same = [](auto one, auto other) {
    return one.size_bytes() == other.size_bytes() &&
           std::memcmp(one.data(), other.data(), one.size_bytes()) == 0;
  };
  return same(a.loaders(), b.loaders()) && same(a.operators(), b.operators()) &&
         same(a.queues(), b.queues()) && same(a.workers(), b.workers()) && same(a.cells(), b.cells()) &&
         same(a.bins(), b.bins()) && same(a.tracks(), b.tracks()) && same(a.words(), b.words());
}

TEST(Segment, DamagedCopiesAreRefused) {
  const ScratchFolder folder;
  const auto segment = Segment::create({"", ""}, 1);
  Registry(*segment).operator_id({.name = "decode"});
  ASSERT_EQ(segment->copy_to(folder / "copy.hrseg"), "");
  const std::string whole = read_bytes(folder / "copy.hrseg");
  SegmentImage intact;
  intact.read_file(folder / "copy.hrseg");
  SegmentImage image;
  for (const std::size_t length : {std::size_t{2}, std::size_t{9}, whole.size() / 2, whole.size() - 9}) {
    write_bytes(folder / "cut.hrseg", whole.substr(0, length));
    EXPECT_THROW(image.read_file(folder / "cut.hrseg"), SegmentError) << length;
  }
  for (std::size_t at = 10; at < whole.size(); at += 97) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    write_bytes(folder / "flipped.hrseg", flipped);
    try {
      image.read_file(folder / "flipped.hrseg");
    } catch (const SegmentError&) {
      continue;
    }
    // Bits that mean nothing, or another way to say the same: a run of zeros copied from elsewhere.
    EXPECT_TRUE(hold_the_same(image, intact)) << at;
  }
  image.read_file(folder / "copy.hrseg");
  EXPECT_EQ(image.operators()[0].name.view(), "decode");
}

TEST(Segment, CopySaysWhyItFailed) {
  const auto segment = Segment::create({"", ""}, 0);
  EXPECT_NE(segment->copy_to("/proc/copy.hrseg"), "");
}

TEST(Segment, AttachesToWhatAnotherProcessMade) {
  const ScratchFolder folder;
  const auto segment = Segment::create({folder / "a.hrseg", ""}, 0);
  expect_success(in_child([&] {
    const auto attached = Segment::attach(folder / "a.hrseg");
    Registry(*attached).operator_id({.name = "from the child"});
  }));
  EXPECT_EQ(segment->operators()[0].name.view(), "from the child");
}

TEST(Segment, AttachRefusesWhatIsNoSegment) {
  const ScratchFolder folder;
  write_bytes(folder / "text", "hello");
  EXPECT_THROW(Segment::attach(folder / "text"), SegmentError);
  EXPECT_THROW(Segment::attach(folder / "missing"), SegmentError);
  EXPECT_THROW(Segment::attach(folder.path()), SegmentError);
}

TEST(Segment, GoesOnWhenItsFileIsRemoved) {
  const ScratchFolder folder;
  const auto segment = Segment::create({folder / "a.hrseg", ""}, 0);
  segment->unlink();
  EXPECT_FALSE(std::filesystem::exists(folder / "a.hrseg"));
  EXPECT_EQ(Registry(*segment).operator_id({.name = "later"}), 0);
}

}  // namespace
}  // namespace headrace::profile
