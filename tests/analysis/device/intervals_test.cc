#include "headrace/analysis/device/intervals.h"

#include <gtest/gtest.h>

namespace headrace::analysis::device {
namespace {

TEST(Intervals, MergesWhatOverlapsOrTouchesAndLeavesEmptyOnesOut) {
  EXPECT_EQ(merged({{5, 7}, {0, 3}, {2, 5}, {9, 9}, {10, 8}, {12, 13}}), (Intervals{{0, 7}, {12, 13}}));
  EXPECT_TRUE(merged({}).empty());
}

TEST(Intervals, IntersectsUnitesAndSubtracts) {
  const Intervals a = {{0, 10}, {20, 30}, {40, 50}};
  const Intervals b = {{5, 25}, {42, 44}, {46, 48}, {60, 70}};
  EXPECT_EQ(intersected(a, b), (Intervals{{5, 10}, {20, 25}, {42, 44}, {46, 48}}));
  EXPECT_EQ(united(a, b), (Intervals{{0, 30}, {40, 50}, {60, 70}}));
  EXPECT_EQ(subtracted(a, b), (Intervals{{0, 5}, {25, 30}, {40, 42}, {44, 46}, {48, 50}}));
  EXPECT_EQ(subtracted(b, a), (Intervals{{10, 20}, {60, 70}}));
  EXPECT_EQ(subtracted(a, {}), a);
}

TEST(Intervals, PartsOfASetSumToIt) {
  const Intervals a = {{0, 100}, {150, 151}, {200, 400}};
  const Intervals b = {{-5, 1}, {50, 250}, {399, 500}};
  EXPECT_EQ(total_ns(a), 301);
  EXPECT_EQ(total_ns(intersected(a, b)) + total_ns(subtracted(a, b)), total_ns(a));
}

}  // namespace
}  // namespace headrace::analysis::device
