#include "headrace/trace/byte_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/profile/errors.h"
#include "trace/stored_gzip.h"

namespace headrace::trace {
namespace {

/// Gives `most` bytes at a time, as a pipe or a network does.
class Trickle : public ByteSource {
 public:
  Trickle(std::string_view bytes, std::size_t most) : rest_(bytes), most_(most) {}
  std::size_t read(std::span<char> into) override {
    return rest_.read(into.first(std::min(into.size(), most_)));
  }

 private:
  MemoryBytes rest_;
  std::size_t most_;
};

struct Inflated {
  std::string text;
  std::string damage;
};

Inflated inflate(std::string_view bytes, std::size_t most = 1 << 20, std::size_t room = 1000) {
  Trickle source(bytes, most);
  GzipStream stream(source, "test");
  Inflated inflated;
  std::vector<char> buffer(room);
  while (const std::size_t read = stream.read(buffer)) inflated.text.append(buffer.data(), read);
  EXPECT_EQ(stream.read(buffer), 0U) << "the end stays the end";
  inflated.damage = stream.damage();
  return inflated;
}

std::string long_text() {
  std::string text;
  while (text.size() < 200'000) text += std::to_string(text.size()) + ",";
  return text;
}

TEST(GzipStream, PassesOtherBytesThrough) {
  EXPECT_EQ(inflate("").text, "");
  EXPECT_EQ(inflate("[").text, "[");
  EXPECT_EQ(inflate("\x1f").text, "\x1f");
  EXPECT_EQ(inflate(long_text(), 7, 3).text, long_text());
}

TEST(GzipStream, InflatesStoredBlocksHoweverTheBytesCome) {
  const std::string text = long_text();
  const std::string gzip = stored_gzip(text);
  for (const std::size_t most : {1, 3, 1000, 1 << 20}) {
    const Inflated inflated = inflate(gzip, most);
    EXPECT_EQ(inflated.text, text) << most;
    EXPECT_EQ(inflated.damage, "") << most;
  }
  EXPECT_EQ(inflate(gzip, 1 << 20, 1).text, text) << "one byte of room";
}

TEST(GzipStream, InflatesCompressedBlocks) {
  // Written by Python's gzip.compress.
  const unsigned char gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x8b, 0xae,
                                0x56, 0x2a, 0xc8, 0x50, 0xb2, 0x52, 0x8a, 0x50, 0xd2, 0x51, 0xca, 0x4b,
                                0xcc, 0x4d, 0x05, 0x32, 0x13, 0x15, 0x50, 0x20, 0x50, 0xa2, 0xa4, 0x58,
                                0xc9, 0xca, 0x50, 0x47, 0x29, 0xa5, 0xb4, 0x48, 0xc9, 0xca, 0xa8, 0x36,
                                0x16, 0x00, 0x20, 0x0f, 0xb5, 0x69, 0x34, 0x00, 0x00, 0x00};
  const std::string_view bytes(reinterpret_cast<const char*>(gzip), sizeof gzip);
  const std::string text = R"([{"ph":"X","name":"a a a a a a a a","ts":1,"dur":2}])";
  EXPECT_EQ(inflate(bytes).text, text);
  EXPECT_EQ(inflate(bytes, 1, 1).text, text);
}

TEST(GzipStream, JoinsMembersAndLeavesWhatFollowsThem) {
  const std::string two = stored_gzip("one ") + stored_gzip("") + stored_gzip("two");
  for (const std::size_t most : {1, 5, 1 << 20}) {
    EXPECT_EQ(inflate(two, most).text, "one two");
    EXPECT_EQ(inflate(two, most).damage, "");
    const std::string padded =
        stored_gzip("one ") + std::string(700, '\0') + stored_gzip("two") + std::string(9, '\0');
    EXPECT_EQ(inflate(padded, most).text, "one two");
    EXPECT_EQ(inflate(padded, most).damage, "");
    EXPECT_EQ(inflate(stored_gzip("one") + "not gzip", most).text, "one");
  }
}

TEST(GzipStream, GivesWhatComesBeforeACut) {
  const std::string text = long_text();
  const std::string gzip = stored_gzip(text);
  for (const std::size_t left : {std::size_t{12}, std::size_t{100}, gzip.size() / 2, gzip.size() - 1}) {
    const Inflated inflated = inflate(gzip.substr(0, left));
    EXPECT_EQ(inflated.text, text.substr(0, inflated.text.size())) << left;
    EXPECT_GE(inflated.text.size() + 100, left) << "all but headers comes out";
    EXPECT_NE(inflated.damage.find("ends too early"), std::string::npos) << inflated.damage;
  }
}

TEST(GzipStream, SaysWhatIsDamaged) {
  std::string gzip = stored_gzip("some text");
  gzip[gzip.size() - 6] ^= 1;
  EXPECT_EQ(inflate(gzip).text, "some text");
  EXPECT_NE(inflate(gzip).damage.find("checksum"), std::string::npos);

  const std::string broken = stored_gzip("one") + std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff\x07", 11);
  EXPECT_EQ(inflate(broken).text, "one");
  EXPECT_NE(inflate(broken).damage, "");

  EXPECT_THROW(inflate(std::string("\x1f\x8b\x09 no method of this number", 20)), FormatError);
}

}  // namespace
}  // namespace headrace::trace
