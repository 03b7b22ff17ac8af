#include "headrace/timeline/gzip_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "headrace/profile/errors.h"
#include "profile/scratch_folder.h"
#include "timeline/read_back.h"

namespace headrace::timeline {
namespace {

using profile::ScratchFolder;

void put_line(GzipWriter& out, std::string_view text, GzipWriter::Place& like) {
  std::memcpy(out.line_room(text.size()), text.data(), text.size());
  out.wrote_line(text.size(), like);
}

class Written : public ::testing::TestWithParam<const char*> {
 protected:
  ScratchFolder folder_;
  std::string path_ = folder_.path() + "/" + GetParam();
};
INSTANTIATE_TEST_SUITE_P(Files, Written, ::testing::Values("text.json.gz", "text.json"));

TEST_P(Written, NothingIsAFileOfNothing) {
  GzipWriter out(path_);
  out.finish();
  EXPECT_EQ(read_back(path_), "");
}

TEST_P(Written, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  GzipWriter out(path_);
  out.write_line(all);
  out.write(all);
  out.write_line(all);
  out.finish();
  EXPECT_EQ(read_back(path_), all + all + all);
}

TEST_P(Written, LinesOfEveryLengthThatAgreeForAWhile) {
  GzipWriter out(path_);
  GzipWriter::Place like;
  std::string expected;
  for (std::size_t length = 0; length <= 1100; ++length) {
    std::string line(length, 'x');
    if (length > 0) line[length * 7 % length] = 'y';
    if (length > 2) line[length - 2] = static_cast<char>('0' + length % 10);
    put_line(out, line, like);
    expected += line;
  }
  out.finish();
  EXPECT_EQ(read_back(path_), expected);
}

TEST_P(Written, AnyMixtureOfTextAndLines) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t most) { return random() % most; };
    std::vector<std::string> kinds;
    std::vector<GzipWriter::Place> places(5);
    for (std::size_t kind = 0; kind < places.size(); ++kind) {
      std::string line(1 + below(kind == 4 ? GzipWriter::kMostLine : 300), 'a');
      for (char& c : line) c = static_cast<char>(seed % 3 == 0 ? random() : '0' + below(40));
      kinds.push_back(line);
    }
    GzipWriter out(path_);
    std::string expected;
    for (int i = 0; i < 3000; ++i) {
      const std::size_t choice = below(200);
      if (choice == 0) {
        const std::string text(below(600'000), static_cast<char>('a' + below(20)));
        out.write(text);
        expected += text;
      } else if (choice == 1) {
        const std::string text(below(10'000), 'z');
        out.write_line(text);
        expected += text;
      } else {
        const std::size_t kind = choice % places.size();
        std::string line = kinds[kind].substr(0, 1 + below(kinds[kind].size()));
        line[below(line.size())] = static_cast<char>(random());
        put_line(out, line, places[kind]);
        expected += line;
      }
    }
    EXPECT_EQ(out.bytes_in(), expected.size());
    out.finish();
    ASSERT_TRUE(read_back(path_) == expected) << "seed " << seed;
  }
}

TEST_P(Written, BeginsAgain) {
  GzipWriter out(path_);
  GzipWriter::Place like;
  put_line(out, "{\"name\":\"in vain\"}", like);
  out.restart();
  out.write("[");
  put_line(out, "{\"name\":\"kept\"}", like);
  out.write("]");
  out.finish();
  EXPECT_EQ(read_back(path_), "[{\"name\":\"kept\"}]");
}

TEST_P(Written, LeavesNothingWhereItIsNotFinished) {
  {
    GzipWriter out(path_);
    out.write_line("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST(GzipWriter, ALineLikeTheLastOneTakesNextToNothing) {
  const ScratchFolder folder;
  GzipWriter out(folder.path() + "/lines.json.gz");
  GzipWriter::Place like;
  for (int i = 0; i < 10'000; ++i) {
    put_line(
        out,
        ",\n{\"ph\":\"X\",\"cat\":\"headrace\",\"name\":\"decode\",\"pid\":2000000000,\"tid\":7,\"ts\":" +
            std::to_string(100'000'000 + 37 * i),
        like);
  }
  out.finish();
  EXPECT_LT(out.bytes_out(), 10'000U * 8);
}

TEST(GzipWriter, SaysWhereItCannotWrite) { EXPECT_THROW(GzipWriter("/nowhere/at/all.json.gz"), Error); }

}  // namespace
}  // namespace headrace::timeline
