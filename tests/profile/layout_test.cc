#include "headrace/profile/layout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace headrace::profile {
namespace {

TEST(Layout, FitsIntoEightMebibytes) { EXPECT_LE(Layout::current().total_bytes, 8U << 20); }

TEST(Layout, SectionsAreAlignedAndApart) {
  const Layout layout = Layout::current();
  std::uint64_t end = sizeof(SegmentHeader);
  for (const SectionInfo& info : layout.sections) {
    EXPECT_EQ(info.offset % 4096, 0U);
    EXPECT_EQ(info.stride % 8, 0U);
    EXPECT_GE(info.offset, end);
    EXPECT_GT(info.count, 0U);
    end = info.offset + std::uint64_t{info.stride} * info.count;
  }
  EXPECT_LE(end, layout.total_bytes);
  EXPECT_EQ(layout.total_bytes % 4096, 0U);
}

TEST(Layout, HoldsWhatIsPromised) {
  EXPECT_GE(kMaxOperators, 32U);
  EXPECT_GE(kMaxWorkers, 64U);
  EXPECT_GE(kMaxCells, 8U * 64U) << "8 operators on each of 64 workers";
}

TEST(Layout, WrittenPartsStayOutOfTheChecksum) {
  EXPECT_GE(offsetof(SegmentHeader, loop_clock), offsetof(SegmentHeader, checksum) + sizeof(std::uint64_t));
  auto header = std::make_unique<SegmentHeader>();
  const std::uint64_t before = header_checksum(*header);
  header->loop_clock.resume(12345);
  header->anchors.add({1, 2});
  header->closed.store(1);
  EXPECT_EQ(header_checksum(*header), before);
  header->rank = 1;
  EXPECT_NE(header_checksum(*header), before);
}

std::string stored(const std::string& text) {
  Name name{};
  name.assign(text);
  return std::string(name.view());
}

TEST(Name, IsKeptWhole) {
  EXPECT_EQ(stored(""), "");
  EXPECT_EQ(stored("decode"), "decode");
  EXPECT_EQ(stored("two\nlines\t[bold]<b>"), "two\nlines\t[bold]<b>");
  const std::string longest(kNameBytes - 1, 'x');
  EXPECT_EQ(stored(longest), longest);
}

TEST(Name, IsCutAtACharacterBoundary) {
  for (std::size_t ascii = 0; ascii < 8; ++ascii) {
    for (const std::string character : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\x8C"}) {
      std::string text(ascii, 'a');
      while (text.size() < 10'000) text += character;
      const std::string kept = stored(text);
      EXPECT_LE(kept.size(), kNameBytes - 1);
      EXPECT_GT(kept.size(), kNameBytes - 1 - character.size());
      EXPECT_EQ((kept.size() - ascii) % character.size(), 0U);
      EXPECT_EQ(kept, text.substr(0, kept.size()));
    }
  }
}

TEST(Name, StopsAtAZeroAndAtTheEnd) {
  EXPECT_EQ(stored(std::string("a\0b", 3)), "a");
  Name full;
  full.bytes.fill('x');  // as a damaged file may have it
  EXPECT_EQ(full.view().size(), kNameBytes);
  EXPECT_EQ(stored(std::string(1000, '\x80')).size(), 0U) << "nothing but continuation bytes";
}

}  // namespace
}  // namespace headrace::profile
