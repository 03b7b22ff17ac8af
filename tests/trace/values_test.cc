#include "headrace/trace/values.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace headrace::trace {
namespace {

/// Far beyond where the memory becomes pages of its own.
constexpr std::size_t kMany = 1'000'000;

Values<std::int64_t> ascending(std::size_t count) {
  Values<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<std::int64_t>(i));
  return values;
}

TEST(Values, KeepWhatIsInThemWhileTheyGrow) {
  Values<std::int64_t> values;
  std::vector<std::int64_t> same;
  for (std::size_t i = 0; i < kMany; ++i) {
    values.push_back(static_cast<std::int64_t>(i * i));
    same.push_back(static_cast<std::int64_t>(i * i));
  }
  EXPECT_EQ(values, same);
  EXPECT_EQ(values.bytes(), kMany * sizeof(std::int64_t));
}

TEST(Values, AreCopiedAndMoved) {
  const Values<std::int64_t> large = ascending(kMany);
  Values<std::int64_t> copy = large;
  copy.push_back(7);
  EXPECT_EQ(copy.size(), large.size() + 1);
  EXPECT_EQ(large, ascending(kMany));

  Values<std::int64_t> moved = std::move(copy);
  EXPECT_EQ(moved.back(), 7);
  moved = ascending(3);
  EXPECT_EQ(moved, (std::vector<std::int64_t>{0, 1, 2}));
  Values<std::int64_t> empty;
  moved = empty;
  EXPECT_TRUE(moved.empty());
  EXPECT_EQ(moved, empty);
}

TEST(Values, ForgetTheirEndAndAreZeroWhereNew) {
  Values<std::int64_t> values = {1, 2, 3};
  values.resize(2);
  values.resize(4);
  EXPECT_EQ(values, (std::vector<std::int64_t>{1, 2, 0, 0}));
  values.pop_back();
  EXPECT_EQ(values.size(), 3U);
  EXPECT_THROW(values.at(3), std::out_of_range);
}

TEST(CompactIntegers, TakeFourBytesWhileAllFitAndEightFromThenOn) {
  CompactIntegers values = {-1, std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max()};
  EXPECT_FALSE(values.is_wide());
  EXPECT_EQ(values.bytes(), 12U);

  constexpr std::int64_t kLarge = std::int64_t{1} << 31;
  values.push_back(kLarge);
  values.push_back(5);
  EXPECT_TRUE(values.is_wide());
  EXPECT_EQ(values.bytes(), 40U);
  EXPECT_EQ(values, (std::vector<std::int64_t>{-1, std::numeric_limits<std::int32_t>::min(),
                                               std::numeric_limits<std::int32_t>::max(), kLarge, 5}));
}

TEST(CompactIntegers, AreEqualHoweverTheyAreKept) {
  CompactIntegers wide = {1, 2, std::numeric_limits<std::int64_t>::min()};
  wide.pop_back();
  EXPECT_TRUE(wide.is_wide());
  EXPECT_EQ(wide, (CompactIntegers{1, 2}));
  EXPECT_FALSE(wide == (CompactIntegers{1, 3}));
}

}  // namespace
}  // namespace headrace::trace
