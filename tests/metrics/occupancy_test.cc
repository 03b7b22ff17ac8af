#include "headrace/metrics/occupancy.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

TEST(OccupancyBins, HaveOneBinPerLevelWhereTheyFit) {
  for (const std::int64_t capacity : {1, 2, 7, 64, 127}) {
    const OccupancyBins bins = OccupancyBins::make(capacity, 128);
    EXPECT_EQ(bins.bins, capacity + 1);
    EXPECT_EQ(bins.levels_per_bin, 1);
    for (std::int64_t level = 0; level <= capacity; ++level) EXPECT_EQ(bins.index(level), level);
    EXPECT_EQ(bins.index(capacity + 100), capacity);
    EXPECT_EQ(bins.index(-3), 0U);
  }
}

/// The ends keep a bin of their own: empty and full are what the verdict reads.
TEST(OccupancyBins, KeepEmptyAndFullApartAtEveryCapacity) {
  std::mt19937_64 random(3);
  std::vector<std::int64_t> capacities = {128, 129, 130, 255, 1000, 4096, 100'000, INT64_MAX - 1, INT64_MAX};
  for (int i = 0; i < 200; ++i)
    capacities.push_back(static_cast<std::int64_t>(random() >> (1 + random() % 55)) + 128);
  for (const std::int64_t capacity : capacities) {
    for (const std::uint32_t limit : {17U, 128U}) {
      const OccupancyBins bins = OccupancyBins::make(capacity, limit);
      ASSERT_LE(bins.bins, limit) << capacity;
      ASSERT_EQ(bins.index(0), 0U);
      ASSERT_EQ(bins.index(1), 1U) << capacity;
      ASSERT_EQ(bins.index(capacity), bins.bins - 1) << capacity;
      ASSERT_EQ(bins.index(capacity - 1), bins.bins - 2) << capacity;
      // Every inner bin holds the same number of levels (the last one perhaps fewer).
      const std::int64_t level =
          1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(capacity - 1));
      ASSERT_EQ(bins.index(level), 1 + (level - 1) / bins.levels_per_bin) << capacity << " " << level;
    }
  }
}

TEST(OccupancyBins, CountHighLevelsOfAnUnboundedQueueInTheLastBin) {
  const OccupancyBins bins = OccupancyBins::make(0, 64);
  EXPECT_EQ(bins.bins, 64U);
  EXPECT_EQ(bins.index(62), 62U);
  EXPECT_EQ(bins.index(63), 63U);
  EXPECT_EQ(bins.index(1'000'000), 63U);
}

struct Walk {
  explicit Walk(std::int64_t capacity, std::uint32_t limit)
      : bins(OccupancyBins::make(capacity, limit)), cells(bins.bins), time_at(cells.get(), bins.bins) {}

  void set(std::int64_t loop_ns, std::int64_t level) { occupancy->set(loop_ns, level, bins, time_at); }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const auto& bin : time_at) sum += bin.load();
    return sum;
  }

  OccupancyBins bins;
  Zeroed<Relaxed<std::int64_t>> cells;
  std::span<Relaxed<std::int64_t>> time_at;
  Zeroed<Occupancy> occupancy;
};

TEST(Occupancy, SumsToTheElapsedTimeOnRandomWalks) {
  std::mt19937_64 random(4);
  for (const std::int64_t capacity : {1, 2, 64, 5000, 0}) {
    Walk walk(capacity, 128);
    std::map<std::int64_t, std::int64_t> expected;
    std::int64_t now = 0, level = 0;
    for (int i = 0; i < 5000; ++i) {
      const auto lasted = static_cast<std::int64_t>(random() % 1'000'000);
      expected[level] += lasted;
      now += lasted;
      const std::int64_t highest = capacity == 0 ? 300 : capacity;
      level = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(highest + 1));
      walk.set(now, level);
      ASSERT_EQ(walk.total(), now);
    }
    std::int64_t integral = 0;
    std::vector<std::int64_t> in_bin(walk.bins.bins, 0);
    for (const auto& [at, ns] : expected) {
      integral += at * ns;
      in_bin[walk.bins.index(at)] += ns;
    }
    EXPECT_EQ(walk.occupancy->level_ns.load(), integral);
    EXPECT_EQ(walk.occupancy->empty_ns.load(), expected[0]);
    EXPECT_EQ(walk.occupancy->full_ns.load(), capacity == 0 ? 0 : expected[capacity]);
    for (std::uint32_t i = 0; i < walk.bins.bins; ++i) EXPECT_EQ(walk.time_at[i].load(), in_bin[i]) << i;
  }
}

TEST(Occupancy, LeavesTheOpenLevelToTheReader) {
  Walk walk(4, 128);
  walk.set(100, 3);
  EXPECT_EQ(walk.occupancy->level.load(), 3);
  EXPECT_EQ(walk.occupancy->since_ns.load(), 100);
  EXPECT_EQ(walk.total(), 100) << "level 3 is open: nothing is charged to it yet";
}

TEST(Occupancy, NeverCountsTimeTwiceWhenTheClockJumpsBack) {
  Walk walk(4, 128);
  walk.set(1000, 1);
  walk.set(400, 2);
  walk.set(1000, 3);
  walk.set(1500, 0);
  EXPECT_LE(walk.total(), 1500);
  for (const auto& bin : walk.time_at) EXPECT_GE(bin.load(), 0);
}

TEST(Occupancy, KeepsTheLevelWhenReset) {
  Walk walk(4, 128);
  walk.set(100, 2);
  walk.set(200, 3);
  walk.occupancy->reset(0, walk.time_at);
  EXPECT_EQ(walk.total(), 0);
  walk.set(50, 0);
  EXPECT_EQ(walk.time_at[3].load(), 50);
}

}  // namespace
}  // namespace headrace::metrics
