#include "headrace/queues/blocking_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "headrace/queues/futex_word.h"

namespace headrace::queues {
namespace {

constexpr int kNothing = 0;  ///< context for queues that are not recorded

template <class Queue, class T>
bool put(Queue& queue, T item) {
  for (;;) {
    const QueueStatus status = queue.try_put(item, 0, kNothing);
    if (status != QueueStatus::not_now) return status == QueueStatus::done;
    queue.wait_not_full(kNever);
  }
}

template <class T, class Queue>
std::optional<T> get(Queue& queue) {
  std::optional<T> item;
  for (;;) {
    const QueueStatus status = queue.try_get(item, 0, kNothing);
    if (status != QueueStatus::not_now) return item;
    queue.wait_not_empty(kNever);
  }
}

TEST(BlockingQueue, FirstInFirstOutUpToItsCapacity) {
  BlockingQueue<int> queue(2);
  int item = 1;
  EXPECT_EQ(queue.try_put(item, 0, kNothing), QueueStatus::done);
  item = 2;
  EXPECT_EQ(queue.try_put(item, 0, kNothing), QueueStatus::done);
  item = 3;
  EXPECT_EQ(queue.try_put(item, 0, kNothing), QueueStatus::not_now);
  EXPECT_EQ(get<int>(queue), 1);
  EXPECT_EQ(get<int>(queue), 2);
  std::optional<int> none;
  EXPECT_EQ(queue.try_get(none, 0, kNothing), QueueStatus::not_now);
}

TEST(BlockingQueue, MovesItemsAndLeavesThemAloneWhenFull) {
  BlockingQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_EQ(queue.try_put(first, 0, kNothing), QueueStatus::done);
  EXPECT_EQ(queue.try_put(second, 0, kNothing), QueueStatus::not_now);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST(BlockingQueue, UnboundedNeverRefuses) {
  BlockingQueue<int> queue(0);
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(put(queue, i));
  EXPECT_EQ(queue.size(), 10000);
}

TEST(BlockingQueue, CloseKeepsWhatIsInsideUnlessDropped) {
  BlockingQueue<int> kept(4);
  put(kept, 1);
  EXPECT_TRUE(kept.close(false).empty());
  EXPECT_FALSE(put(kept, 2));
  EXPECT_EQ(get<int>(kept), 1);
  EXPECT_EQ(get<int>(kept), std::nullopt);
  BlockingQueue<int> dropped(4);
  put(dropped, 7);
  EXPECT_EQ(dropped.close(true).size(), 1U);
  EXPECT_EQ(get<int>(dropped), std::nullopt);
}

TEST(BlockingQueue, CloseWakesWhoeverWaits) {
  BlockingQueue<int> queue(1);
  std::thread consumer([&] { EXPECT_EQ(get<int>(queue), std::nullopt); });
  BlockingQueue<int> full(1);
  put(full, 1);
  std::thread producer([&] { EXPECT_FALSE(put(full, 2)); });
  queue.close(false);
  full.close(false);
  consumer.join();
  producer.join();
}

TEST(BlockingQueue, ManyThreadsLoseAndDoubleNothing) {
  constexpr int kProducers = 4;
  constexpr int kConsumers = 4;
  constexpr int kItems = 5000;
  for (const std::int64_t capacity : {1, 3, 64}) {
    BlockingQueue<int> queue(capacity);
    std::vector<std::vector<int>> got(kConsumers);
    std::vector<std::thread> producers;
    std::vector<std::thread> consumers;
    for (int i = 0; i < kConsumers; ++i) {
      consumers.emplace_back([&, i] {
        while (const auto item = get<int>(queue)) got[static_cast<std::size_t>(i)].push_back(*item);
      });
    }
    for (int i = 0; i < kProducers; ++i) {
      producers.emplace_back([&, i] {
        for (int item = 0; item < kItems; ++item) ASSERT_TRUE(put(queue, i * kItems + item));
      });
    }
    for (auto& thread : producers) thread.join();
    queue.close(false);
    for (auto& thread : consumers) thread.join();
    std::vector<int> times(kProducers * kItems, 0);
    for (const auto& list : got) {
      for (const int item : list) ++times[static_cast<std::size_t>(item)];
    }
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), kProducers * kItems) << "capacity " << capacity;
    // One producer's items reach one consumer in the order in which they were put.
    for (const auto& list : got) {
      std::vector<int> last(kProducers, -1);
      for (const int item : list) {
        const auto producer = static_cast<std::size_t>(item / kItems);
        EXPECT_LT(last[producer], item);
        last[producer] = item;
      }
    }
  }
}

/// Counts what an instrumented queue tells its recorder.
struct Counting {
  std::vector<std::int64_t>* levels;
  void put(std::int64_t level, std::int64_t, int) noexcept { levels->push_back(level); }
  void get(std::int64_t level, std::int64_t, int) noexcept { levels->push_back(level); }
  void emptied() noexcept { levels->push_back(0); }
};

TEST(BlockingQueue, TellsItsRecorderEveryLevelUnderTheLock) {
  std::vector<std::int64_t> levels;
  BlockingQueue<int, Counting> queue(3, Counting{&levels});
  for (int item : {1, 2, 3}) ASSERT_EQ(queue.try_put(item, 0, 0), QueueStatus::done);
  std::optional<int> out;
  ASSERT_EQ(queue.try_get(out, 0, 0), QueueStatus::done);
  queue.close(true);
  EXPECT_EQ(levels, (std::vector<std::int64_t>{1, 2, 3, 2, 0}));
}

}  // namespace
}  // namespace headrace::queues
