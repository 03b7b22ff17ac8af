#include "headrace/metrics/history_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "headrace/metrics/worker_cell.h"
#include "metrics/zeroed.h"
#include "support/times.h"

namespace headrace::metrics {
namespace {

using Packing = HistoryPacking;

constexpr std::uint32_t kBlocked = static_cast<std::uint32_t>(WorkerState::blocked_in);
constexpr std::uint32_t kDecode = WorkerMoment::kFirstOperator + 3;

struct HistoryBench {
  explicit HistoryBench(std::uint32_t tracks = 8, std::uint32_t words = 24 * 1024)
      : track_table(tracks),
        word_table(words),
        store(track_table.get(), tracks, &tracks_used, word_table.get(), words, &words_used) {}

  std::int64_t began_ns(const HistoryTrack& track, std::uint32_t entry) const {
    return track.base_ns.load() +
           static_cast<std::int64_t>(Packing::tick_of(store.words_of(track)[entry].load())
                                     << Packing::kTickShift);
  }
  WorkerMoment worker_moment(const HistoryTrack& track, std::uint32_t entry) const {
    return WorkerMoment::unpack(Packing::value_of(store.words_of(track)[entry].load()));
  }
  double level(const HistoryTrack& track, std::uint32_t entry) const {
    return static_cast<double>(LevelMoment::unpack(Packing::value_of(store.words_of(track)[entry].load()))) /
           16;
  }

  Zeroed<HistoryTrack> track_table;
  Zeroed<HistoryWord> word_table;
  std::atomic<std::uint32_t> tracks_used{0};
  std::atomic<std::uint32_t> words_used{0};
  HistoryStore store;
  std::int64_t now = 5 * kSecond;
};

TEST(HistoryPacking, KeepsWhatFitsExactly) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{(1 << 23) - 1}}) {
    EXPECT_EQ(Packing::widen<23>(Packing::shorten<23, 5>(number)), number);
  }
  for (std::uint64_t number = 1; number < (std::uint64_t{1} << 53); number = number * 3 + 1) {
    const std::uint64_t kept = Packing::widen<23>(Packing::shorten<23, 5>(number));
    EXPECT_LE(kept, number);
    EXPECT_LE(static_cast<double>(number - kept), static_cast<double>(number) / (1 << 22)) << number;
  }
  EXPECT_EQ(Packing::number_of(Packing::range(123456789, 77)), 123456789U);
  EXPECT_EQ(Packing::ticks_of(Packing::range(123456789, 77)), 77U);
}

TEST(WorkerHistory, KeepsStatesThatLast) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({}, bench.now);
  ASSERT_NE(track, nullptr);
  WorkerHistory history = bench.store.worker_history(track);
  history.open(kBlocked, bench.now);
  const std::int64_t began = bench.now;
  for (int i = 0; i < 3; ++i) {
    history.change(kDecode, bench.now += 2 * kMs);
    history.change(kBlocked, bench.now += 5 * kMs);
  }
  ASSERT_EQ(track->count.load(), 6U);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(bench.worker_moment(*track, i).code, i % 2 == 0 ? kBlocked : kDecode);
    EXPECT_EQ(bench.worker_moment(*track, i).busy, i % 2 == 0 ? 0U : WorkerMoment::kWhole);
    const std::int64_t expected = began + (i / 2) * 7 * kMs + (i % 2) * 2 * kMs;
    EXPECT_NEAR(static_cast<double>(bench.began_ns(*track, i)), static_cast<double>(expected), 256);
  }
  // The present state is no entry yet, but said.
  EXPECT_EQ(track->value.load(), kBlocked);
  EXPECT_EQ(track->since_ns.load(), bench.now);
}

TEST(WorkerHistory, CallsAreToldApartHoweverShortTheGap) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({}, bench.now);
  WorkerHistory history = bench.store.worker_history(track);
  history.open(kDecode, bench.now);
  const std::int64_t began = bench.now;
  for (int i = 0; i < 3; ++i) {
    history.change(kBlocked, bench.now += 4 * kMs);
    history.change(kDecode, bench.now += 2000);
  }
  ASSERT_EQ(track->count.load(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.worker_moment(*track, i).code, kDecode);
    EXPECT_NEAR(static_cast<double>(bench.began_ns(*track, i) - began), i * (4.0 * kMs + 2000), 3000);
  }
  // A wait that woke up for 2 us goes on: the next entry is the call after it.
  history.change(kBlocked, bench.now += 4 * kMs);
  history.change(kDecode, bench.now += 4 * kMs);
  history.change(kBlocked, bench.now += 2000);
  history.change(kDecode, bench.now += 4 * kMs);
  history.change(kBlocked, bench.now += 4 * kMs);
  ASSERT_EQ(track->count.load(), 6U);
  EXPECT_EQ(bench.worker_moment(*track, 4).code, kBlocked);
  EXPECT_EQ(bench.worker_moment(*track, 5).code, kDecode);
}

TEST(WorkerHistory, FastStatesBecomeOneEntryWithAShare) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({}, bench.now);
  WorkerHistory history = bench.store.worker_history(track);
  history.open(kBlocked, bench.now);
  // 1 us blocked, 3 us busy, again and again: far below the threshold of 20 us.
  for (int i = 0; i < 1000; ++i) {
    history.change(kDecode, bench.now += 1000);
    history.change(kBlocked, bench.now += 3000);
  }
  // All that time it was the same mixture, so one entry says it.
  ASSERT_GE(track->count.load(), 1U);
  EXPECT_LE(track->count.load(), 3U);
  const WorkerMoment moment = bench.worker_moment(*track, track->count.load() - 1);
  EXPECT_EQ(moment.code, kDecode);
  EXPECT_NEAR(static_cast<double>(moment.busy) / WorkerMoment::kWhole, 0.75, 0.1);
}

TEST(WorkerHistory, WhatIsToldAfterwardsKeepsTimeGoingForward) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({}, bench.now);
  WorkerHistory history = bench.store.worker_history(track);
  history.open(kBlocked, bench.now);
  history.change(kDecode, bench.now + 10 * kMs);
  history.change(kBlocked, bench.now + 4 * kMs);  // began earlier than what was told before
  history.change(kDecode, bench.now + 20 * kMs);
  for (std::uint32_t i = 1; i < track->count.load(); ++i) {
    EXPECT_GE(bench.began_ns(*track, i), bench.began_ns(*track, i - 1));
  }
}

/// A week of two states a second, on a simulated clock: the memory is what it was in the first minute, the
/// week's beginning is still there, and the last minute is there as it was recorded.
TEST(WorkerHistory, AWeekCostsNoMoreThanAMinute) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({}, bench.now);
  const std::uint32_t words_used = bench.words_used.load();
  WorkerHistory history = bench.store.worker_history(track);
  history.open(kBlocked, bench.now);
  const std::int64_t began = bench.now;
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600 * kSecond;
  // The first half of the week it is busy 25 % of the time, the second half 75 %.
  while (bench.now - began < kWeek) {
    const std::int64_t busy = bench.now - began < kWeek / 2 ? 250 * kMs : 750 * kMs;
    history.change(kDecode, bench.now += kSecond - busy);
    history.change(kBlocked, bench.now += busy);
    ASSERT_LE(track->count.load(), track->capacity.load());
  }
  EXPECT_EQ(bench.words_used.load(), words_used);
  EXPECT_NEAR(static_cast<double>(bench.began_ns(*track, 0)), static_cast<double>(began), 256);

  // Busy time of each half, from the entries alone.
  double busy_of_half[2] = {0, 0};
  std::int64_t longest_recent = 0;
  std::int64_t longest = 0;
  const std::uint32_t count = track->count.load();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t from = bench.began_ns(*track, i);
    const std::int64_t until = i + 1 < count ? bench.began_ns(*track, i + 1) : bench.now;
    const std::int64_t middle = began + kWeek / 2;
    const double share = static_cast<double>(bench.worker_moment(*track, i).busy) / WorkerMoment::kWhole;
    busy_of_half[0] += share * static_cast<double>(std::max<std::int64_t>(0, std::min(until, middle) - from));
    busy_of_half[1] += share * static_cast<double>(std::max<std::int64_t>(0, until - std::max(from, middle)));
    longest = std::max(longest, until - from);
    if (from > bench.now - 60 * kSecond) longest_recent = std::max(longest_recent, until - from);
  }
  EXPECT_NEAR(busy_of_half[0] / (kWeek / 2), 0.25, 0.05);
  EXPECT_NEAR(busy_of_half[1] / (kWeek / 2), 0.75, 0.05);
  EXPECT_LE(longest_recent, kSecond) << "the last minute is in detail";
  EXPECT_GT(longest, 60 * kSecond) << "the first days are not";
}

TEST(RangeHistory, KeepsWaitsWithTheirBatches) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({.kind = TrackKind::get_next, .subject = 1}, bench.now);
  RangeHistory history = bench.store.range_history(track);
  for (std::uint64_t batch = 0; batch < 5; ++batch) {
    bench.now += 10 * kMs;
    history.wait(bench.now, bench.now + 2 * kMs, batch, batch % 2 == 0);
    bench.now += 2 * kMs;
  }
  ASSERT_EQ(track->count.load(), 10U);
  const HistoryWord* words = bench.store.words_of(*track);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(Packing::number_of(words[2 * i + 1].load()), i);
    EXPECT_NEAR(static_cast<double>(Packing::ticks_of(words[2 * i + 1].load())) * 256, 2e6, 512);
    EXPECT_EQ(WaitMoment::unpack(Packing::value_of(words[2 * i].load())).ready, i % 2 == 0);
  }
}

TEST(RangeHistory, FastWaitsBecomeOneRange) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({.kind = TrackKind::get_next, .subject = 1}, bench.now);
  RangeHistory history = bench.store.range_history(track);
  for (std::uint64_t batch = 0; batch < 100'000; ++batch) {
    history.wait(bench.now, bench.now + 100, batch, true);
    bench.now += 200;
  }
  history.end_loop(bench.now);
  const std::uint32_t ranges = track->count.load() / 2;
  EXPECT_LE(ranges, 20'000'000 / HistoryTrack::kFinestNs + 2);
  const HistoryWord* words = bench.store.words_of(*track);
  const WaitMoment some = WaitMoment::unpack(Packing::value_of(words[2].load()));
  EXPECT_TRUE(some.merged);
  EXPECT_NEAR(static_cast<double>(some.share) / WaitMoment::kWhole, 0.5, 0.02);
  EXPECT_TRUE(WaitMoment::unpack(Packing::value_of(words[2 * ranges - 2].load())).ended);
}

TEST(RangeHistory, ThinsWaitsOfAWeek) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({.kind = TrackKind::get_next, .subject = 1}, bench.now);
  RangeHistory history = bench.store.range_history(track);
  const std::int64_t began = bench.now;
  constexpr std::uint64_t kBatches = 7 * 24 * 3600;
  for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
    history.wait(bench.now, bench.now + 300 * kMs, batch, false);
    bench.now += kSecond;
  }
  ASSERT_LE(track->count.load(), track->capacity.load());
  const HistoryWord* words = bench.store.words_of(*track);
  // Of the first range of all, begin and batch are still known; the last is a single call.
  const std::uint64_t first_end = Packing::tick_of(words[0].load());
  const std::uint64_t first_ticks = Packing::ticks_of(words[1].load());
  EXPECT_NEAR(static_cast<double>((first_end - first_ticks) * 256), 0, 3600e9);
  EXPECT_EQ(Packing::number_of(words[1].load()), 0U);
  EXPECT_NEAR(static_cast<double>(WaitMoment::unpack(Packing::value_of(words[0].load())).share) / 1023, 0.3,
              0.05);
  EXPECT_EQ(Packing::number_of(words[track->count.load() - 1].load()), kBatches - 1);
  EXPECT_EQ(track->base_ns.load(), began);
}

TEST(RangeHistory, LeavesShortRangesOutAndCountsThem) {
  HistoryBench bench;
  HistoryTrack* track = bench.store.claim({.kind = TrackKind::annotation}, bench.now);
  RangeHistory history = bench.store.range_history(track);
  for (int i = 0; i < 1000; ++i) {
    history.range(bench.now, bench.now + 500, 0, 1);
    bench.now += 1000;
  }
  EXPECT_EQ(track->left_out.load() + track->count.load() / 2, 1000U);
  EXPECT_LE(track->count.load() / 2, 51U);
}

TEST(HistoryStore, TheNextWriterOfTheSameThingGoesOn) {
  HistoryBench bench;
  const TrackOwner worker{.subject = 1, .number = 2, .pid = 10, .tid = 10};
  HistoryTrack* first = bench.store.claim(worker, bench.now);
  WorkerHistory history = bench.store.worker_history(first);
  history.open(kDecode, bench.now);
  history.close(0, bench.now += kSecond);
  HistoryStore::release(*first);
  // Another worker does not get it, the same one in a new process does, with what is in it.
  EXPECT_NE(bench.store.claim({.subject = 1, .number = 3, .pid = 11, .tid = 11}, bench.now), first);
  HistoryTrack* again =
      bench.store.claim({.subject = 1, .number = 2, .pid = 12, .tid = 12}, bench.now += kSecond);
  EXPECT_EQ(again, first);
  bench.store.worker_history(again).open(kDecode, bench.now);
  ASSERT_EQ(again->count.load(), 2U);
  EXPECT_EQ(bench.worker_moment(*again, 0).code, kDecode);
  EXPECT_EQ(bench.worker_moment(*again, 1).code, 0U) << "idle between its two lives";
  EXPECT_EQ(again->pid.load(), 12);
}

TEST(HistoryStore, ManyOwnersAllHaveSomethingAndThenTheOldestGoes) {
  HistoryBench bench(128, 104 * 1024);
  std::vector<HistoryTrack*> tracks;
  for (int i = 0; i < 128; ++i) {
    HistoryTrack* track = bench.store.claim({.subject = 1, .number = i, .pid = 1}, bench.now += kSecond);
    if (track == nullptr) break;
    for (const HistoryTrack* other : tracks) {
      ASSERT_TRUE(track->first_word.load() >= other->first_word.load() + other->capacity.load() ||
                  other->first_word.load() >= track->first_word.load() + track->capacity.load());
    }
    tracks.push_back(track);
  }
  EXPECT_GE(tracks.size(), 100U);
  EXPECT_GE(tracks.front()->capacity.load(), 4000U);
  EXPECT_LE(bench.words_used.load(), 104U * 1024);
  while (bench.store.claim({.subject = 2, .number = 1, .pid = 1}, bench.now) != nullptr) {
  }
  EXPECT_EQ(bench.store.claim({.subject = 3, .number = 1, .pid = 1}, bench.now), nullptr) << "all are live";
  HistoryStore::release(*tracks[7]);
  HistoryStore::release(*tracks[3]);
  EXPECT_EQ(bench.store.claim({.subject = 3, .number = 1, .pid = 1}, bench.now), tracks[3]);
  EXPECT_EQ(tracks[3]->count.load(), 0U);
}

TEST(HistoryStore, ThreadsThatClaimAtOnceGetTracksOfTheirOwn) {
  HistoryBench bench(64, 64 * 1024);
  std::vector<HistoryTrack*> got(32);
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&, i] {
      got[static_cast<std::size_t>(i)] = bench.store.claim({.subject = 1, .number = i, .pid = 1}, bench.now);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::sort(got.begin(), got.end());
  EXPECT_NE(got.front(), nullptr);
  EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end());
}

/// A reader copies a track while its writer appends and merges: what it accepts is in order and complete.
TEST(WorkerHistory, CanBeReadWhileItIsWritten) {
  HistoryBench bench(1, 24 * 64);  // small: it is merged all the time
  HistoryTrack* track = bench.store.claim({}, bench.now);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    WorkerHistory history = bench.store.worker_history(track);
    std::int64_t now = bench.now;
    history.open(kBlocked, now);
    while (!stop.load()) {
      history.change(kDecode, now += kMs);
      history.change(kBlocked, now += kMs);
    }
  });
  int accepted = 0;
  for (int attempt = 0; attempt < 200'000 && accepted < 300; ++attempt) {
    const std::uint32_t generation = track->generation.load(std::memory_order_acquire);
    const std::uint32_t count = track->count.load(std::memory_order_acquire);
    std::vector<std::uint64_t> words;
    for (std::uint32_t i = 0; i < count; ++i) words.push_back(bench.store.words_of(*track)[i].load());
    std::atomic_thread_fence(std::memory_order_acquire);
    if (generation % 2 != 0 || track->generation.load(std::memory_order_relaxed) != generation) continue;
    ++accepted;
    for (std::size_t i = 1; i < words.size(); ++i) {
      ASSERT_LT(Packing::tick_of(words[i - 1]), Packing::tick_of(words[i])) << i << " of " << count;
    }
  }
  stop.store(true);
  writer.join();
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace headrace::metrics
