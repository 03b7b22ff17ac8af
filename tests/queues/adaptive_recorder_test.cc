#include "headrace/queues/adaptive_recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/profile/current.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/session.h"
#include "headrace/queues/bounded_queue.h"
#include "headrace/queues/mpmc_ring.h"
#include "support/current_run.h"

namespace headrace::queues {
namespace {

using profile::CurrentSession;
using profile::Session;
using RecordedQueue = BoundedQueue<MpmcRing<int>, AdaptiveRecorder>;

constexpr PacedProbe::Limits kAlwaysSlow{.fast_items_per_s = std::int64_t{1} << 62, .slow_items_per_s = 0};
constexpr PacedProbe::Limits kSoonFast{.fast_items_per_s = 0, .slow_items_per_s = 0};
constexpr int kManyItems = 20'000;

class AdaptiveRecorders : public CurrentRun {
 protected:
  /// The run's record of the only queue.
  static metrics::QueueCell& cell(Session& session) { return session.segment().queues()[0].cell; }
  metrics::QueueCell& cell() { return cell(*session_); }
  static std::uint64_t waits(const metrics::LatencyHistogram& histogram) {
    std::uint64_t count = 0;
    for (const auto& bucket : histogram.buckets) count += bucket.load();
    return count;
  }
  /// What the threads themselves say that they put (or got), over all of them.
  std::uint64_t moved_by_threads(bool puts) {
    std::uint64_t items = 0;
    for (std::uint32_t i = 0; i < profile::kMaxWorkers; ++i) {
      for (const auto& edge : session_->segment().workers()[i].edges) {
        if (edge.queue.load() != 0 && (edge.is_put.load() != 0) == puts) items += edge.items.load();
      }
    }
    return items;
  }
};

TEST_F(AdaptiveRecorders, SlowQueueIsRecordedAtEveryTransition) {
  RecordedQueue queue(4, AdaptiveRecorder("decoded", 4, kAlwaysSlow));
  for (int i = 0; i < 3; ++i) queue.put(int{i});
  EXPECT_EQ(cell().occupancy.level.load(), 3);
  queue.get();
  EXPECT_EQ(cell().occupancy.level.load(), 2);
  EXPECT_EQ(cell().puts.load(), 3U);
  EXPECT_EQ(cell().gets.load(), 1U);
  EXPECT_EQ(cell().capacity.load(), 4);
  EXPECT_EQ(cell().sampled.load(), 0U);
  EXPECT_EQ(moved_by_threads(true), 3U);
  EXPECT_EQ(session_->segment().queues()[0].name.view(), "decoded");
}

TEST_F(AdaptiveRecorders, SleepingCountsAsWaitingOfTheQueueAndOfTheThread) {
  RecordedQueue queue(1, AdaptiveRecorder("slow", 1, kAlwaysSlow));
  std::atomic<bool> asleep{false};
  std::thread consumer([&] {
    EXPECT_EQ(queue.get(), 7);
    queue.get();
  });
  // The consumer's worker says when it is blocked at its input.
  while (!asleep.load()) {
    for (std::uint32_t i = 0; i < profile::kMaxWorkers; ++i) {
      const auto& worker = session_->segment().workers()[i];
      if (worker.life.load() == static_cast<std::uint32_t>(metrics::WorkerLife::live) &&
          worker.account.load() == static_cast<std::uint32_t>(metrics::WorkerState::blocked_in)) {
        asleep.store(true);
      }
    }
    std::this_thread::yield();
  }
  queue.put(7);
  while (cell().gets.load() == 0) std::this_thread::yield();
  queue.close();
  consumer.join();
  EXPECT_GT(cell().get_wait.sum_ns.load(), 0);
  EXPECT_EQ(waits(cell().get_wait), 1U);  // what ended without an item is no get
  EXPECT_EQ(cell().put_wait.sum_ns.load(), 0);
}

TEST_F(AdaptiveRecorders, FastQueueIsCountedToTheItem) {
  {
    RecordedQueue queue(8, AdaptiveRecorder("fast", 8, kSoonFast));
    for (int i = 0; i < kManyItems; ++i) {
      queue.put(int{i});
      queue.get();
    }
  }
  EXPECT_EQ(cell().puts.load(), static_cast<std::uint64_t>(kManyItems));
  EXPECT_EQ(cell().gets.load(), static_cast<std::uint64_t>(kManyItems));
  EXPECT_EQ(waits(cell().put_wait), static_cast<std::uint64_t>(kManyItems));
  EXPECT_EQ(cell().sampled.load(), 1U);
  // The threads' own shares are estimates of 1 in 32.
  EXPECT_NEAR(static_cast<double>(moved_by_threads(true)), kManyItems, kManyItems / 50.0);
  EXPECT_NEAR(static_cast<double>(moved_by_threads(false)), kManyItems, kManyItems / 50.0);
}

TEST_F(AdaptiveRecorders, FastQueueOfManyThreadsIsCounted) {
  {
    RecordedQueue queue(16, AdaptiveRecorder("fast", 16, kSoonFast));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int item = 0; item < kManyItems; ++item) queue.put(int{item}, kNever, "produce");
      });
      threads.emplace_back([&] {
        for (int item = 0; item < kManyItems; ++item) queue.get(kNever, "consume");
      });
    }
    for (auto& thread : threads) thread.join();
  }
  // While the pace changed, calls in flight may have been missed or told twice.
  EXPECT_NEAR(static_cast<double>(cell().puts.load()), 3.0 * kManyItems, 8);
  EXPECT_NEAR(static_cast<double>(cell().gets.load()), 3.0 * kManyItems, 8);
  EXPECT_EQ(cell().occupancy.level.load(), 0);
}

TEST_F(AdaptiveRecorders, SamplerFollowsTheLevelOfAQueueThatStandsStill) {
  RecordedQueue queue(8, AdaptiveRecorder("fast", 8, kSoonFast));
  for (int i = 0; i < kManyItems; ++i) {
    queue.put(int{i});
    queue.get();
  }
  for (int i = 0; i < 5; ++i) queue.put(int{i});
  while (cell().occupancy.level.load() != 5) std::this_thread::yield();
  const std::int64_t before = cell().occupancy.level_ns.load();
  while (cell().occupancy.level_ns.load() == before) std::this_thread::yield();
  EXPECT_EQ(cell().occupancy.level.load(), 5);
}

TEST_F(AdaptiveRecorders, QueueThatBecomesSlowIsRecordedExactlyAgain) {
  RecordedQueue queue(
      8, AdaptiveRecorder("both", 8, {.fast_items_per_s = 0, .slow_items_per_s = std::int64_t{1} << 62}));
  int put = 0;
  std::uint64_t steps_at_once = 0;
  // 256 puts make it fast; the sampler finds it too slow before long. Then every put shows at once, until the
  // next 256.
  while (steps_at_once < 100 && put < 50'000'000) {
    const std::uint64_t before = cell().puts.load();
    queue.put(int{put});
    queue.get();
    ++put;
    steps_at_once = put > 1000 && cell().puts.load() == before + 1 ? steps_at_once + 1 : 0;
    if (put > 256) std::this_thread::yield();
  }
  EXPECT_EQ(steps_at_once, 100U);
  // A change of pace may miss the calls in flight or count them twice; there was one per 256 puts at most.
  EXPECT_NEAR(static_cast<double>(cell().puts.load()), put, 2.0 + put / 128.0);
}

TEST_F(AdaptiveRecorders, FastQueueFollowsTheCurrentRun) {
  const std::shared_ptr<Session> second = Session::open({});
  RecordedQueue queue(8, AdaptiveRecorder("fast", 8, kSoonFast));
  const auto move = [&](int items) {
    for (int i = 0; i < items; ++i) {
      queue.put(int{i});
      queue.get();
    }
  };
  move(kManyItems);
  CurrentSession::push(second);
  move(kManyItems);
  const std::uint64_t first_puts = cell().puts.load();
  move(kManyItems);
  EXPECT_EQ(cell().puts.load(), first_puts);
  EXPECT_NEAR(static_cast<double>(first_puts), kManyItems, 64);  // until the first sample in the new run
  EXPECT_GT(cell(*second).puts.load(), 0U);
  CurrentSession::pop(*second);
  second->close();
}

TEST_F(AdaptiveRecorders, LoopOfAFastQueueHasItsItemsAndSingleServiceTimes) {
  {
    RecordedQueue queue(8, AdaptiveRecorder("fast", 8, kSoonFast));
    std::thread producer([&] {
      for (int i = 0; i < kManyItems; ++i) queue.put(int{i}, kNever, "produce");
      queue.close();
    });
    while (queue.get(kNever, "consume")) {
    }
    producer.join();
  }
  profile::SegmentImage image;
  image.read_memory(session_->segment().data(), session_->segment().size());
  double items = 0;
  double timed = 0;
  for (const auto& one : image.cells()) {
    if (one.owner.load() == 0 || image.operators()[one.operator_id.load()].name.view() != "produce") continue;
    items += static_cast<double>(one.items.load());
    timed += static_cast<double>(waits(one.service));
    EXPECT_EQ(one.sampled.load(), 1U);
  }
  EXPECT_NEAR(items, kManyItems, kManyItems * 0.15);
  EXPECT_GT(timed, 0);
  EXPECT_LE(timed, items);
}

TEST_F(AdaptiveRecorders, ForkedChildRecordsFastQueuesOfItsOwn) {
  const auto make_fast = [](RecordedQueue& queue) {
    for (int i = 0; i < 1000; ++i) {
      queue.put(int{i});
      queue.get();
    }
  };
  auto parents = std::make_unique<RecordedQueue>(8, AdaptiveRecorder("parent's", 8, kSoonFast));
  make_fast(*parents);  // the sampler runs, here and not in the child
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const std::shared_ptr<Session> own = Session::open({});
    CurrentSession::push(own);
    RecordedQueue queue(8, AdaptiveRecorder("child's", 8, kSoonFast));
    make_fast(queue);
    queue.put(1);
    while (cell(*own).occupancy.level.load() != 1) std::this_thread::yield();
    parents.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(AdaptiveRecorders, FullStaysFullWhenTheCapacityWasChanged) {
  RecordedQueue queue(2, AdaptiveRecorder("tuned", 2, kAlwaysSlow), 8);
  queue.set_capacity(4);
  for (int i = 0; i < 3; ++i) queue.put(int{i});
  EXPECT_EQ(cell().occupancy.level.load(), 1);
  queue.put(3);
  EXPECT_EQ(cell().occupancy.level.load(), 2);
}

TEST_F(AdaptiveRecorders, DrainedQueueIsEmpty) {
  RecordedQueue queue(4, AdaptiveRecorder("cancelled", 4, kAlwaysSlow));
  queue.put(1);
  queue.put(2);
  EXPECT_EQ(queue.drain().size(), 2U);
  EXPECT_EQ(cell().occupancy.level.load(), 0);
  EXPECT_EQ(cell().gets.load(), 0U);
}

}  // namespace
}  // namespace headrace::queues
