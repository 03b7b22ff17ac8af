#include "headrace/timeline/gzip_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "headrace/profile/errors.h"
#include "profile/scratch_folder.h"
#include "timeline/read_back.h"

namespace headrace::timeline {
namespace {

using profile::ScratchFolder;

void put_line(GzipWriter& out, std::string_view text) {
  std::memcpy(out.room(text.size()), text.data(), text.size());
  out.wrote(text.size());
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
  put_line(out, all);
  out.write(all);
  put_line(out, all);
  out.finish();
  EXPECT_EQ(read_back(path_), all + all + all);
}

TEST_P(Written, AnyMixtureOfTextAndLines) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t most) { return random() % most; };
    GzipWriter out(path_);
    std::string expected;
    for (int i = 0; i < 3000; ++i) {
      const bool is_text = below(200) == 0;
      std::string part(is_text ? below(600'000) : 1 + below(GzipWriter::kMaxRoom), 'a');
      for (std::size_t at = 0; at < part.size(); at += 1 + below(20)) part[at] = static_cast<char>(random());
      is_text ? out.write(part) : put_line(out, part);
      expected += part;
    }
    out.finish();
    ASSERT_TRUE(read_back(path_) == expected) << "seed " << seed;
  }
}

TEST_P(Written, BeginsAgain) {
  GzipWriter out(path_);
  put_line(out, "{\"name\":\"in vain\"}");
  out.restart();
  out.write("[");
  put_line(out, "{\"name\":\"kept\"}");
  out.write("]");
  out.finish();
  EXPECT_EQ(read_back(path_), "[{\"name\":\"kept\"}]");
}

TEST_P(Written, LeavesNothingWhereItIsNotFinished) {
  {
    GzipWriter out(path_);
    out.write("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST(GzipWriter, SaysWhereItCannotWrite) { EXPECT_THROW(GzipWriter("/nowhere/at/all.json.gz"), Error); }

}  // namespace
}  // namespace headrace::timeline
