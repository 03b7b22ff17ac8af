#include "headrace/trace/names.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace::trace {
namespace {

TEST(Names, GiveEqualTextsTheSameNumberInOrderOfFirstUse) {
  Names names;
  EXPECT_EQ(names.intern(""), 0U);
  EXPECT_EQ(names.intern("aten::add"), 1U);
  EXPECT_EQ(names.intern("aten::mul"), 2U);
  EXPECT_EQ(names.intern(std::string("aten::") + "add"), 1U);
  EXPECT_EQ(names[2], "aten::mul");
  EXPECT_EQ(names.size(), 3U);
}

TEST(Names, StayTheSameWhileTheTableGrows) {
  Names names;
  for (int i = 0; i < 20000; ++i)
    ASSERT_EQ(names.intern("kernel" + std::to_string(i)), static_cast<Names::Id>(i + 1));
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(names[static_cast<Names::Id>(i + 1)], "kernel" + std::to_string(i));
    ASSERT_EQ(names.find("kernel" + std::to_string(i)), static_cast<Names::Id>(i + 1));
  }
  EXPECT_EQ(names.find("kernel20000"), Names::missing);
}

TEST(Names, LieBehindEachOtherWithOffsetsAsArrowWantsThem) {
  Names names;
  names.intern("ab");
  names.intern("cde");
  EXPECT_EQ(names.texts(), "abcde");
  EXPECT_EQ(names.offsets(), (std::vector<std::uint64_t>{0, 0, 2, 5}));
}

TEST(Names, TellTextsApartThatDifferInOneByteAnywhere) {
  Names names;
  const std::string text(41, 'k');
  names.intern(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = 'l';
    EXPECT_EQ(names.intern(other), i + 2);
  }
  EXPECT_EQ(names.intern(std::string("k\0", 2)), 43U);
  EXPECT_EQ(names.intern("k"), 44U);
}

}  // namespace
}  // namespace headrace::trace
