// However large a file is, and however little of it is compressed: memory is that of the columns and a few
// windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/trace/reader.h"
#include "trace/stored_gzip.h"

namespace headrace::trace {
namespace {

constexpr std::size_t kMegabyte = 1'000'000;

/// The greatest resident set since this was made.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << "5";
    before_ = kilobytes("VmRSS:");
  }
  std::size_t bytes() const { return 1024 * (std::max(kilobytes("VmHWM:"), before_) - before_); }

 private:
  static std::size_t kilobytes(std::string_view entry) {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with(entry)) return std::stoul(line.substr(entry.size()));
    }
    return 0;
  }

  std::size_t before_ = 0;
};

/// Parts that follow each other, each so many times.
class Parts : public ByteSource {
 public:
  explicit Parts(std::vector<std::pair<std::string, std::size_t>> parts) : parts_(std::move(parts)) {}

  std::size_t read(std::span<char> into) override {
    while (part_ < parts_.size() && round_ == parts_[part_].second) {
      ++part_;
      round_ = 0;
    }
    if (part_ == parts_.size()) return 0;
    const std::string_view rest = std::string_view(parts_[part_].first).substr(at_);
    const std::size_t bytes = std::min(into.size(), rest.size());
    std::copy_n(rest.data(), bytes, into.data());
    at_ += bytes;
    if (at_ == parts_[part_].first.size()) {
      at_ = 0;
      ++round_;
    }
    return bytes;
  }

 private:
  std::vector<std::pair<std::string, std::size_t>> parts_;
  std::size_t part_ = 0;
  std::size_t round_ = 0;
  std::size_t at_ = 0;
};

/// A gzip member that holds a hundred and fifty times its own length of one character: a block of fixed codes
/// with the character and `kCopies` copies of 258 bytes from one byte before.
class GzipRun {
 public:
  static constexpr std::size_t kCopies = 16'000;
  static constexpr std::size_t kBytes = 1 + 258 * kCopies;

  static std::string of(char c) {
    GzipRun run;
    run.put(1, 1);  // the last block of the member
    run.put(1, 2);  // fixed codes
    run.put_code(0x30u + static_cast<unsigned char>(c), 8);
    for (std::size_t i = 0; i < kCopies; ++i) {
      run.put_code(0xc5, 8);  // 258 bytes
      run.put_code(0, 5);     // from one byte before
    }
    run.put_code(0, 7);  // end of the block
    while (run.bits_ > 0) run.put(0, 1);
    append_little_endian(run.gzip_, crc32_of(std::string(kBytes, c)), 4);
    append_little_endian(run.gzip_, static_cast<std::uint32_t>(kBytes), 4);
    return run.gzip_;
  }

 private:
  /// Lowest bit first, as everything in the format but codes.
  void put(std::uint32_t value, int bits) {
    for (int i = 0; i < bits; ++i) {
      if (bits_ == 0) gzip_.push_back('\0');
      gzip_.back() = static_cast<char>(gzip_.back() | static_cast<int>(value >> i & 1u) << bits_);
      bits_ = (bits_ + 1) % 8;
    }
  }
  void put_code(std::uint32_t code, int bits) {
    for (int i = bits - 1; i >= 0; --i) put(code >> i & 1u, 1);
  }

  std::string gzip_ = std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  int bits_ = 0;
};

void expect_bounded_memory() {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's own memory is several times that of the program";
#endif
}

TEST(TraceMemory, OfAGzipBombIsThatOfAFewWindows) {
  expect_bounded_memory();
  if (IsSkipped()) return;
  constexpr std::size_t kRuns = 30;
  const std::string event = R"({"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 10, "dur": 2})";
  struct Bomb {
    const char* where;
    std::string before;
    char filling;
    std::string behind;
    std::uint64_t skipped;
  };
  const std::vector<Bomb> bombs = {
      {"between two events", "[" + event + ",", ' ', event + "]", 0},
      {"a name", "[" + event + R"(,{"ph": "X", "name": ")", 'a', "\"}," + event + "]", 1},
      {"brackets", "[" + event + R"(,{"args": )", '[', "", 1},
      {"a value beside the events", R"({"traceEvents": [)" + event + "," + event + R"(], "more": ")", 'a',
       "\"}", 0},
      {"a key", R"({"traceEvents": [)" + event + "," + event + "], \"", 'a', "\": 1}", 0},
  };
  for (const Bomb& bomb : bombs) {
    Parts source(
        {{stored_gzip(bomb.before), 1}, {GzipRun::of(bomb.filling), kRuns}, {stored_gzip(bomb.behind), 1}});
    const PeakMemory peak;
    const TraceFile file = read_source(source, "bomb.json.gz");
    EXPECT_EQ(file.notes.bytes, bomb.before.size() + kRuns * GzipRun::kBytes + bomb.behind.size())
        << bomb.where;
    EXPECT_EQ(file.columns.size(), bomb.behind.empty() ? 1U : 2U) << bomb.where;
    EXPECT_EQ(file.notes.skipped(), bomb.skipped) << bomb.where;
    EXPECT_LT(peak.bytes(), 64 * kMegabyte) << bomb.where;
  }
}

TEST(TraceMemory, BesideTheColumnsIsThatOfAFewWindows) {
  expect_bounded_memory();
  if (IsSkipped()) return;
  constexpr std::size_t kEvents = 1'000'000;
  const std::string event =
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 7, "ts": 10.5, "dur": 2,)"
      R"( "args": {"stream": 7, "correlation": 12, "bytes": 4096}},)";
  Parts source({{"[", 1}, {event, kEvents - 1}, {event.substr(0, event.size() - 1), 1}, {"]", 1}});
  const PeakMemory peak;
  const TraceFile file = read_source(source, "large.json");
  ASSERT_EQ(file.columns.size(), kEvents);
  EXPECT_TRUE(file.notes.clean());
  EXPECT_GT(file.notes.bytes, 100 * kMegabyte);
  EXPECT_LT(peak.bytes(), file.columns.bytes() + 64 * kMegabyte);
}

}  // namespace
}  // namespace headrace::trace
