#include "headrace/analysis/device/figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace::analysis::device {
namespace {

TEST(Describe, GivesTheFiguresOfPandas) {
  const Description figures = describe({4, 1, 3, 10});
  EXPECT_EQ(figures.count, 4U);
  EXPECT_DOUBLE_EQ(figures.mean, 4.5);
  EXPECT_NEAR(figures.std, 3.872983346, 1e-9);
  EXPECT_DOUBLE_EQ(figures.min, 1);
  EXPECT_DOUBLE_EQ(figures.p25, 2.5);
  EXPECT_DOUBLE_EQ(figures.p50, 3.5);
  EXPECT_DOUBLE_EQ(figures.p75, 5.5);
  EXPECT_DOUBLE_EQ(figures.max, 10);
}

TEST(Describe, HasNoFigureWhereThereIsNone) {
  EXPECT_EQ(describe({}).count, 0U);
  EXPECT_TRUE(std::isnan(describe({}).mean));
  EXPECT_TRUE(std::isnan(describe({5}).std));
  EXPECT_DOUBLE_EQ(describe({5}).p75, 5);
}

TEST(Describe, WeighsLevelsWithHowLongTheyHeld) {
  const TimeWeighted figures = weigh({{100, 1}, {1, 90}, {2, 9}, {7, 0}});
  EXPECT_EQ(figures.total_ns, 100);
  EXPECT_DOUBLE_EQ(figures.mean, 2.08);
  EXPECT_DOUBLE_EQ(figures.p75, 1);
  EXPECT_TRUE(std::isnan(weigh({{5, 0}}).mean));
}

}  // namespace
}  // namespace headrace::analysis::device
