#include "headrace/metrics/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

/// A writer of one running total: `rate` units per ns from event to event.
struct Writer {
  Zeroed<WindowGrid> grid;
  Zeroed<WindowLog<1>> log;
  struct Event {
    std::int64_t at;
    std::int64_t total;
  };
  std::vector<Event> events{{0, 0}};

  /// The total grows linearly between events, as the time in a state does.
  void advance(std::int64_t now, std::int64_t total) {
    const Event last = events.back();
    grid->advance(
        now,
        [&](std::uint32_t index, std::int64_t boundary) {
          log->at(static_cast<int>(index), 0).store(at(last, {now, total}, boundary));
        },
        [&] { log->halve(); });
    events.push_back({now, total});
  }
  static std::int64_t at(const Event& from, const Event& to, std::int64_t when) {
    return to.total == from.total ? from.total : from.total + (when - from.at);
  }
  /// What the total was at a moment, from the list of events alone.
  std::int64_t brute_force(std::int64_t when) const {
    for (std::size_t i = 1; i < events.size(); ++i) {
      if (events[i].at >= when) return at(events[i - 1], events[i], when);
    }
    return events.back().total;
  }
  void check() const {
    const std::int64_t width = grid->width_ns();
    for (std::uint32_t i = 0; i < grid->closed.load(); ++i) {
      ASSERT_EQ(log->get(static_cast<int>(i), 0), brute_force((i + 1) * width))
          << "window " << i << " of " << width;
    }
  }
};

TEST(WindowGrid, ClosesAWindowAtItsEnd) {
  Writer writer;
  writer.advance(kFirstWindowNs - 1, kFirstWindowNs - 1);
  EXPECT_EQ(writer.grid->closed.load(), 0U);
  writer.advance(kFirstWindowNs, kFirstWindowNs);
  EXPECT_EQ(writer.grid->closed.load(), 1U);
  EXPECT_EQ(writer.log->get(0, 0), kFirstWindowNs);
}

TEST(WindowGrid, DoublesWhenAllAreUsed) {
  Writer writer;
  writer.advance(kWindows * kFirstWindowNs, 0);
  EXPECT_EQ(writer.grid->closed.load(), static_cast<std::uint32_t>(kWindows));
  EXPECT_EQ(writer.grid->doublings.load(), 0U);
  writer.advance((kWindows + 1) * kFirstWindowNs, 0);
  EXPECT_EQ(writer.grid->doublings.load(), 1U);
  EXPECT_EQ(writer.grid->width_ns(), 2 * kFirstWindowNs);
}

TEST(WindowGrid, EqualsABruteForceForRandomEvents) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Writer writer;
    std::int64_t now = 0, total = 0;
    for (int i = 0; i < 400; ++i) {
      // Mostly shorter than a window, sometimes many windows, now and then longer than all of them.
      const int kind = static_cast<int>(random() % 100);
      const std::int64_t longest = kind < 80   ? kFirstWindowNs
                                   : kind < 98 ? 40 * kFirstWindowNs
                                               : 4000 * kFirstWindowNs;
      const auto lasted = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
      now += lasted;
      if (random() % 2 == 0) total += lasted;
      writer.advance(now, total);
    }
    writer.check();
    // Every window that ended is closed, and no other.
    const std::int64_t width = writer.grid->width_ns();
    EXPECT_EQ(writer.grid->closed.load(), static_cast<std::uint32_t>(now / width));
    EXPECT_GT(writer.grid->doublings.load(), 0U);
  }
}

TEST(WindowGrid, EndsWithAnyGap) {
  Writer writer;
  const std::int64_t a_century = 3'155'760'000LL * 1'000'000'000;
  writer.advance(a_century, a_century);
  writer.check();
  EXPECT_LE(writer.grid->closed.load(), static_cast<std::uint32_t>(kWindows));
  EXPECT_EQ(writer.log->get(0, 0), writer.grid->width_ns());
}

/// Grids of different writers differ by doublings only, so boundaries of the coarser one are boundaries of
/// both.
TEST(WindowGrid, NestsInAWiderOne) {
  Writer often, rarely;
  for (std::int64_t now = 0; now < 1000 * kFirstWindowNs; now += kFirstWindowNs / 3) often.advance(now, now);
  rarely.advance(1000 * kFirstWindowNs, 1000 * kFirstWindowNs);
  EXPECT_EQ(often.grid->doublings.load(), rarely.grid->doublings.load());
  for (int i = 0; i < static_cast<int>(std::min(often.grid->closed.load(), rarely.grid->closed.load()));
       ++i) {
    EXPECT_EQ(often.log->get(i, 0), rarely.log->get(i, 0));
  }
}

}  // namespace
}  // namespace headrace::metrics
