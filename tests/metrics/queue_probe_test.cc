#include "headrace/metrics/queue_probe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <vector>

#include "headrace/metrics/history_store.h"
#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

struct QueueBench {
  explicit QueueBench(std::int64_t capacity) : bins(OccupancyBins::make(capacity, 128)), time_at(bins.bins) {
    clock->open(now);
    cell->capacity.store(capacity);
    cell->levels_per_bin.store(bins.levels_per_bin);
    cell->bins.store(bins.bins);
    probe = QueueProbe(cell.get(), time_at.get(), clock.get());
  }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < bins.bins; ++i) sum += time_at[i].load();
    return sum;
  }

  std::int64_t now = 5'000'000;
  OccupancyBins bins;
  Zeroed<LoopClock> clock;
  Zeroed<QueueCell> cell;
  Zeroed<Relaxed<std::int64_t>> time_at;
  QueueProbe probe;
};

TEST(QueueProbe, DoesNothingUnbound) {
  QueueProbe probe;
  EXPECT_FALSE(probe.bound());
  probe.changed(3, 100);
  probe.put(1, 100, true);
  probe.get(1, 100, true);
}

/// Levels that last are entries of the history; levels that change every microsecond are one with their mean.
TEST(QueueProbe, KeepsLevelsForTheTimeline) {
  QueueBench bench(8);
  Zeroed<HistoryTrack> track;
  Zeroed<HistoryWord> words(1024);
  std::atomic<std::uint32_t> tracks_used{0};
  std::atomic<std::uint32_t> words_used{0};
  HistoryStore store(track.get(), 1, &tracks_used, words.get(), 1024, &words_used);
  LevelHistory history =
      store.level_history(store.claim({.kind = TrackKind::queue, .subject = 1}, bench.now));
  ASSERT_TRUE(history.bound());
  history.open(0, bench.now);
  bench.probe = QueueProbe(bench.cell.get(), bench.time_at.get(), bench.clock.get(), history);
  bench.clock->resume(bench.now);
  const auto level = [&](std::uint32_t entry) {
    return static_cast<double>(LevelMoment::unpack(HistoryPacking::value_of(words[entry].load()))) / 16;
  };
  bench.probe.changed(7, bench.now += 1'000'000);
  bench.probe.changed(3, bench.now += 1'000'000);
  bench.probe.changed(3, bench.now += 1'000'000);
  ASSERT_EQ(track->count.load(), 3U);
  EXPECT_EQ(level(0), 0);
  EXPECT_EQ(level(1), 7);
  EXPECT_EQ(level(2), 3);
  // Between 3 and 5 every microsecond: 4 on average.
  for (int i = 0; i < 100; ++i) bench.probe.changed(i % 2 == 0 ? 5 : 3, bench.now += 1000);
  EXPECT_LE(track->count.load(), 9U);
  EXPECT_NEAR(level(track->count.load() - 1), 4, 0.25);
}

TEST(QueueProbe, CountsLevelsAndWaits) {
  QueueBench bench(2);
  bench.clock->resume(bench.now);
  bench.probe.changed(1, bench.now += 10);
  bench.probe.put(0, bench.now, true);
  bench.probe.changed(2, bench.now += 30);
  bench.probe.put(25, bench.now, true);
  bench.probe.changed(1, bench.now += 60);
  bench.probe.get(7, bench.now, true);
  EXPECT_EQ(bench.time_at[0].load(), 10);
  EXPECT_EQ(bench.time_at[1].load(), 30);
  EXPECT_EQ(bench.time_at[2].load(), 60);
  EXPECT_EQ(bench.cell->occupancy.empty_ns.load(), 10);
  EXPECT_EQ(bench.cell->occupancy.full_ns.load(), 60);
  EXPECT_EQ(bench.cell->puts.load(), 2U);
  EXPECT_EQ(bench.cell->gets.load(), 1U);
  EXPECT_EQ(bench.cell->put_wait.sum_ns.load(), 25);
  EXPECT_EQ(bench.cell->get_wait.sum_ns.load(), 7);
}

TEST(QueueProbe, LeavesEndMarksOut) {
  QueueBench bench(2);
  bench.clock->resume(bench.now);
  bench.probe.changed(1, bench.now += 10);
  bench.probe.put(5, bench.now, false);
  EXPECT_EQ(bench.cell->puts.load(), 0U);
  EXPECT_EQ(bench.cell->put_wait.sum_ns.load(), 0);
  EXPECT_EQ(bench.cell->occupancy.level.load(), 1) << "it takes a place all the same";
}

TEST(QueueProbe, KeepsTheLevelButNotTheTimeOfStartUp) {
  QueueBench bench(4);
  bench.probe.changed(3, bench.now += 1000);
  bench.probe.put(0, bench.now, true);
  bench.clock->resume(bench.now += 1000);
  bench.probe.changed(2, bench.now += 40);
  bench.probe.get(0, bench.now, true);
  EXPECT_EQ(bench.total(), 40);
  EXPECT_EQ(bench.time_at[3].load(), 40);
  EXPECT_EQ(bench.cell->puts.load(), 1U) << "totals count start-up too";
  EXPECT_EQ(bench.cell->loop_puts.load(), 0);
  EXPECT_EQ(bench.cell->loop_gets.load(), 1);
}

TEST(QueueProbe, EqualsABruteForceWithPausesAndWindows) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    QueueBench bench(seed % 2 == 0 ? 4 : 0);
    bench.clock->resume(bench.now);
    struct Interval {
      std::int64_t from, to, level;
    };
    std::vector<Interval> intervals;
    std::int64_t level = 0, last = 0, puts = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> puts_at;
    const std::int64_t longest = seed % 3 == 0 ? 10'000 : 10 * kFirstWindowNs;
    for (int i = 0; i < 300; ++i) {
      bench.now += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
      const std::int64_t loop_ns = bench.clock->read(bench.now).loop_ns;
      intervals.push_back({last, loop_ns, level});
      last = loop_ns;
      level = static_cast<std::int64_t>(random() % 5);
      bench.probe.changed(level, bench.now);
      const bool paused = bench.clock->read(bench.now).paused;
      bench.probe.put(0, bench.now, true);
      if (!paused) puts_at.emplace_back(loop_ns, ++puts);
      ASSERT_EQ(bench.total(), loop_ns);
      if (random() % 20 == 0) paused ? bench.clock->resume(bench.now) : bench.clock->pause(bench.now);
    }
    const WindowGrid& grid = bench.cell->grid;
    for (std::uint32_t i = 0; i < grid.closed.load(); ++i) {
      const std::int64_t boundary = (i + 1) * grid.width_ns();
      std::int64_t level_ns = 0, empty_ns = 0, full_ns = 0;
      for (const Interval& one : intervals) {
        const std::int64_t lasted = std::max<std::int64_t>(0, std::min(one.to, boundary) - one.from);
        level_ns += lasted * one.level;
        empty_ns += one.level == 0 ? lasted : 0;
        full_ns += one.level == 4 && seed % 2 == 0 ? lasted : 0;
      }
      std::int64_t done = 0;
      for (const auto& [at, count] : puts_at) done = at < boundary ? count : done;
      const int window = static_cast<int>(i);
      ASSERT_EQ(bench.cell->windows.get(window, 0), done);
      ASSERT_EQ(bench.cell->windows.get(window, 2), level_ns);
      ASSERT_EQ(bench.cell->windows.get(window, 3), empty_ns);
      ASSERT_EQ(bench.cell->windows.get(window, 4), full_ns);
    }
  }
}

TEST(QueueProbe, NeverCountsNegativeOrDoubleTimeWhenTheClockJumps) {
  std::mt19937_64 random(9);
  QueueBench bench(4);
  bench.clock->resume(bench.now);
  const std::int64_t began = bench.now;
  std::int64_t latest = began;
  for (int i = 0; i < 2000; ++i) {
    bench.now += static_cast<std::int64_t>(random() % 1'000'000);
    if (random() % 10 == 0) bench.now -= static_cast<std::int64_t>(random() % 3'000'000);
    latest = std::max(latest, bench.now);
    bench.probe.changed(static_cast<std::int64_t>(random() % 5), bench.now);
    ASSERT_LE(bench.total(), latest - began);
    for (std::uint32_t bin = 0; bin < bench.bins.bins; ++bin) ASSERT_GE(bench.time_at[bin].load(), 0);
  }
}

}  // namespace
}  // namespace headrace::metrics
