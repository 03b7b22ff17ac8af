#include "headrace/metrics/item_ages.h"

#include <gtest/gtest.h>

namespace headrace::metrics {
namespace {

TEST(ItemAges, AreFromPutToTake) {
  ItemAges ages;
  ages.put(1, 100);
  ages.put(2, 150);
  EXPECT_EQ(ages.take(180), 80);
  ages.put(2, 200);
  EXPECT_EQ(ages.take(260), 110);
  EXPECT_EQ(ages.take(300), 100);
}

/// The queue held two items when recording began.
TEST(ItemAges, AreUnknownForItemsWhosePutWasNotSeen) {
  ItemAges ages;
  ages.put(3, 100);
  EXPECT_EQ(ages.take(110), -1);
  EXPECT_EQ(ages.take(120), -1);
  EXPECT_EQ(ages.take(130), 30);
}

TEST(ItemAges, AreUnknownBeyondTheItemsThatAreKept) {
  ItemAges ages;
  const std::int64_t level = ItemAges::kMaxItems + 1;
  for (std::int64_t i = 1; i <= level; ++i) ages.put(i, i);
  for (std::int64_t i = 1; i < level; ++i) EXPECT_EQ(ages.take(1000), 1000 - i);
  EXPECT_EQ(ages.take(1000), -1);
  ages.put(1, 1010);
  EXPECT_EQ(ages.take(1015), 5);
}

}  // namespace
}  // namespace headrace::metrics
