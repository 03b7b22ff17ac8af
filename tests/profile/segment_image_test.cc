#include "headrace/profile/segment_image.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/figures.h"
#include "headrace/profile/registry.h"
#include "headrace/profile/segment.h"
#include "headrace/profile/snapshot.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

/// A valid segment with a little of everything in it.
std::unique_ptr<Segment> small_segment() {
  auto segment = Segment::create({"", ""}, 0);
  Registry registry(*segment);
  const int op = registry.operator_id({.name = "decode"});
  registry.queue_id("decoded", 8);
  registry.loader_id("train", op);
  metrics::WorkerCell* worker = registry.claim_worker(metrics::Clock::now_ns());
  registry.claim_cell(*worker, op, metrics::Place::worker, false)->items.store(5);
  return segment;
}

std::string bytes_of(const Segment& segment) {
  return {static_cast<const char*>(segment.data()), segment.size()};
}

/// Reads a file as everything that reports does; false if it is refused with a SegmentError.
bool reads(const std::string& path) {
  try {
    SegmentImage image;
    image.read_file(path);
    for (const LoaderSummary& loader : list_loaders(image)) read_profile(image, loader.index);
    return true;
  } catch (const SegmentError&) {
    return false;
  }
}

TEST(SegmentImage, RefusesAFileCutAnywhere) {
  const ScratchFolder folder;
  const std::string path = folder / "cut.hrseg";
  const std::string whole = bytes_of(*small_segment());
  write_bytes(path, whole);
  ASSERT_TRUE(reads(path));
  // From the end towards the start: one file, cut again and again.
  for (std::size_t length = (whole.size() - 1) / 1000 * 1000;; length -= 1000) {
    std::filesystem::resize_file(path, length);
    ASSERT_FALSE(reads(path)) << length;
    if (length == 0) break;
  }
  write_bytes(path, whole + "x");
  EXPECT_FALSE(reads(path));
}

TEST(SegmentImage, RefusesEveryFlippedBitOfTheFixedHeader) {
  const ScratchFolder folder;
  const std::string path = folder / "flipped.hrseg";
  std::string bytes = bytes_of(*small_segment());
  write_bytes(path, bytes);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::size_t fixed = offsetof(SegmentHeader, checksum) + sizeof(std::uint64_t);
  for (std::size_t i = 0; i < fixed; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      file.seekp(static_cast<std::streamoff>(i)).put(static_cast<char>(bytes[i] ^ (1 << bit))).flush();
      ASSERT_FALSE(reads(path)) << "byte " << i << " bit " << bit;
    }
    file.seekp(static_cast<std::streamoff>(i)).put(bytes[i]).flush();
  }
  EXPECT_TRUE(reads(path));
}

/// The part of the header that changes while running is under no checksum: any byte of it must read as
/// something.
TEST(SegmentImage, ReadsWhateverTheRunningHeaderHolds) {
  const ScratchFolder folder;
  const std::string path = folder / "flipped.hrseg";
  const std::string bytes = bytes_of(*small_segment());
  write_bytes(path, bytes);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (std::size_t i = offsetof(SegmentHeader, loop_clock); i < sizeof(SegmentHeader); ++i) {
    for (const int value : {0xFF, 0x80, bytes[i] ^ 1}) {
      file.seekp(static_cast<std::streamoff>(i)).put(static_cast<char>(value)).flush();
      ASSERT_TRUE(reads(path)) << "byte " << i;
    }
    file.seekp(static_cast<std::streamoff>(i)).put(bytes[i]).flush();
  }
}

TEST(SegmentImage, ReadsAnyGarbageBehindAValidHeader) {
  const ScratchFolder folder;
  const std::string path = folder / "garbage.hrseg";
  const std::string valid = bytes_of(*small_segment());
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes = valid;
    // Dense garbage first, then a few wild words in an otherwise sane segment.
    const std::size_t step = seed < 4 ? 8 : 8 * (1 + random() % 500);
    for (std::size_t i = offsetof(SegmentHeader, loop_clock); i + 8 <= bytes.size(); i += step) {
      const std::uint64_t word = random() >> (random() % 64);
      std::memcpy(bytes.data() + i, &word, sizeof(word));
    }
    write_bytes(path, bytes);
    ASSERT_TRUE(reads(path)) << seed;
  }
}

TEST(SegmentImage, RefusesWhatIsNoSegment) {
  const ScratchFolder folder;
  std::mt19937_64 random(1);
  for (const std::size_t size : {0, 1, 8, 1407, 1408, 100'000}) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    write_bytes(folder / "random", bytes);
    EXPECT_FALSE(reads(folder / "random")) << size;
  }
  EXPECT_FALSE(reads(folder.path())) << "a folder";
  EXPECT_FALSE(reads(folder / "missing"));
  EXPECT_FALSE(reads("/dev/null"));
  EXPECT_FALSE(reads("/dev/zero"));
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(reads(folder / "fifo")) << "and does not wait for a writer";
}

/// What a refusal says: the file, and what is wrong with it.
TEST(SegmentImage, SaysWhatIsWrong) {
  const ScratchFolder folder;
  const std::string path = folder / "x.hrseg";
  const auto message_of = [&](auto&& change) {
    const auto segment = small_segment();
    std::string bytes = bytes_of(*segment);
    SegmentHeader& header = segment->header();
    change(header);
    header.checksum = header_checksum(header);
    std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof(header));
    write_bytes(path, bytes);
    try {
      SegmentImage image;
      image.read_file(path);
    } catch (const SegmentError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of([](SegmentHeader&) {}), "");
  const std::string version = message_of([](SegmentHeader& header) { header.layout_version = 99; });
  EXPECT_NE(version.find(path), std::string::npos);
  EXPECT_NE(version.find("another version of Headrace (layout 99"), std::string::npos) << version;
  EXPECT_NE(message_of([](SegmentHeader& header) { header.magic[0] = 'X'; }).find("magic"),
            std::string::npos);
  EXPECT_NE(message_of([](SegmentHeader& header) { header.byte_order = 0x04030201; }).find("byte order"),
            std::string::npos);
  EXPECT_NE(message_of([](SegmentHeader& header) { header.sections[3].offset += 64; }).find("sections"),
            std::string::npos);
  EXPECT_NE(message_of([](SegmentHeader& header) { header.sections[4].count = ~0U; }).find("sections"),
            std::string::npos);
  EXPECT_NE(message_of([](SegmentHeader& header) { header.total_bytes = ~0ULL; }).find("sections"),
            std::string::npos);
}

TEST(SegmentImage, UsedAgainHoldsNothingOfTheOldOne) {
  const auto full = small_segment();
  Registry registry(*full);
  for (int i = 0; i < 50; ++i) registry.operator_id({.name = "operator " + std::to_string(i)});
  const auto empty = Segment::create({"", ""}, 0);
  SegmentImage image;
  image.read_memory(full->data(), full->size());
  EXPECT_EQ(image.operators()[50].name.view(), "operator 49");
  image.read_memory(empty->data(), empty->size());
  for (const OperatorRecord& record : image.operators()) EXPECT_EQ(record.life.load(), 0U);
  for (const auto& cell : image.cells()) EXPECT_EQ(cell.owner.load(), 0U);
  image.read_memory(full->data(), full->size());
  EXPECT_EQ(image.operators()[50].name.view(), "operator 49");
}

TEST(SegmentImage, ClonesAndMoves) {
  const auto segment = small_segment();
  SegmentImage image;
  EXPECT_TRUE(image.empty());
  EXPECT_TRUE(image.clone().empty());
  image.read_memory(segment->data(), segment->size());
  SegmentImage copy = image.clone();
  segment->cells()[0].items.store(9);
  image.read_memory(segment->data(), segment->size());
  EXPECT_EQ(copy.cells()[0].items.load(), 5U);
  EXPECT_EQ(image.cells()[0].items.load(), 9U);
  const SegmentImage moved = std::move(copy);
  EXPECT_EQ(moved.cells()[0].items.load(), 5U);
}

/// While a writer goes on, a copy of it is of one moment: what its accounts hold sums to the loop time of its
/// last event, and its windows are those that its grid says are closed.
TEST(SegmentImage, IsOfOneMomentWhileWritersGoOn) {
  const auto segment = Segment::create({"", ""}, 0);
  Registry registry(*segment);
  metrics::LoopClock& clock = segment->header().loop_clock;
  std::int64_t now = segment->header().opened_ns;
  clock.resume(now);
  metrics::WorkerCell* worker = registry.claim_worker(now);
  metrics::OperatorCell* cell = registry.claim_cell(*worker, 0, metrics::Place::worker, false);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    metrics::WorkerProbe probe;
    probe.bind(worker, segment->cells(), &clock, now);
    while (!stop.load(std::memory_order_relaxed)) {
      probe.enter(*cell, now += 7'000'000);  // a window closes every few events
      probe.leave(now += 3'000'000, false);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  SegmentImage image;
  constexpr int kReads = 300;
  int of_one_moment = 0;
  for (int i = 0; i < kReads; ++i) {
    image.read_memory(segment->data(), segment->size());
    const metrics::WorkerCell& copy = image.workers()[0];
    const metrics::OperatorCell& of = image.cells()[0];
    std::int64_t sum = of.busy_ns.load();
    for (const auto& state : copy.state_ns) sum += state.load();
    const std::uint32_t closed = copy.grid.closed.load();
    std::int64_t at_boundary = closed == 0 ? 0 : of.windows.get(static_cast<int>(closed) - 1, 0);
    for (int state = 0; closed > 0 && state < static_cast<int>(metrics::kWorkerStates); ++state) {
      at_boundary += copy.windows.get(static_cast<int>(closed) - 1, state);
    }
    of_one_moment += sum == copy.since_ns.load() && at_boundary == closed * copy.grid.width_ns() ? 1 : 0;
  }
  stop.store(true);
  writer.join();
  // A writer that loses its core in the middle of an update leaves the reader without a settled copy: rare.
  EXPECT_GE(of_one_moment, kReads * 9 / 10);
}

}  // namespace
}  // namespace headrace::profile
