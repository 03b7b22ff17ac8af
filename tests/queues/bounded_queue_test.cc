// Waiting, closing and losing nothing, with more threads than cores.
#include "headrace/queues/bounded_queue.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "headrace/queues/reorder_buffer.h"
#include "queues/kinds.h"

namespace headrace::queues {
namespace {

using namespace std::chrono_literals;

// Waiting is one code for all kinds.
using Queue = BoundedQueue<MpmcRing<int>>;

TEST(BoundedQueue, TriesDoNotWait) {
  Queue queue(1);
  std::optional<int> out;
  EXPECT_EQ(queue.try_get(out), QueueStatus::not_now);
  EXPECT_EQ(queue.try_put(1), QueueStatus::done);
  EXPECT_EQ(queue.try_put(2), QueueStatus::not_now);
  EXPECT_EQ(queue.try_get(out), QueueStatus::done);
  EXPECT_EQ(out, 1);
}

TEST(BoundedQueue, TimeoutsOfZeroBelowZeroAndAMoment) {
  Queue queue(1);
  std::optional<int> out;
  const std::vector<Deadline> deadlines = {after(0ns), after(-1h), after(1ms),
                                           after(std::chrono::nanoseconds::min()), Deadline::min()};
  for (const Deadline deadline : deadlines) EXPECT_EQ(queue.get(out, deadline), QueueStatus::timed_out);
  queue.put(1);
  for (const Deadline deadline : deadlines) EXPECT_EQ(queue.put(2, deadline), QueueStatus::timed_out);
  // What is there at once needs no time.
  EXPECT_EQ(queue.get(out, after(-1h)), QueueStatus::done);
  EXPECT_EQ(queue.put(3, after(0ns)), QueueStatus::done);
}

TEST(BoundedQueue, ATimeoutTooLongForTheClockIsNever) {
  EXPECT_EQ(after(std::chrono::nanoseconds::max()), kNever);
  Queue queue(1);
  std::thread producer([&] { queue.put(1); });
  EXPECT_EQ(queue.get(after(std::chrono::nanoseconds::max())), 1);
  producer.join();
}

TEST(BoundedQueue, CloseWakesAGetThatSleepsAndAPutThatSleeps) {
  Queue empty(1);
  Queue full(1);
  full.put(1);
  std::thread consumer([&] { EXPECT_EQ(empty.get(), std::nullopt); });
  std::thread producer([&] { EXPECT_EQ(full.put(2), QueueStatus::closed); });
  std::this_thread::sleep_for(5ms);  // most likely both sleep by now; either way they have to end
  empty.close();
  full.close();
  consumer.join();
  producer.join();
  EXPECT_EQ(full.get(), 1);
  EXPECT_EQ(full.get(), std::nullopt);
}

TEST(BoundedQueue, GrowingWakesAPutThatSleeps) {
  Queue queue(1, NotRecorded{}, 2);
  queue.put(1);
  std::thread producer([&] { EXPECT_EQ(queue.put(2), QueueStatus::done); });
  std::this_thread::sleep_for(5ms);
  queue.set_capacity(2);
  producer.join();
  EXPECT_EQ(queue.size(), 2);
}

TEST(BoundedQueue, DrainGivesBackWhatIsInside) {
  Queue queue(3);
  for (int i = 1; i <= 3; ++i) queue.put(int{i});
  EXPECT_EQ(queue.drain(), (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(queue.closed());
  EXPECT_EQ(queue.drain(), std::vector<int>{});
}

TEST(BoundedQueue, AnIdleQueueCostsNoCpuTime) {
  Queue queue(1);
  rusage used{};
  std::thread consumer([&] {
    queue.get();
    getrusage(RUSAGE_THREAD, &used);
  });
  std::this_thread::sleep_for(200ms);
  queue.close();
  consumer.join();
  // A thread that spins would have used all of it.
  EXPECT_LT(used.ru_utime.tv_sec * 1'000'000 + used.ru_utime.tv_usec, 100'000);
}

/// `producers` threads put 0..items-1 in turns, `consumers` take them; who took what.
template <class Queue>
std::vector<std::vector<int>> transfer(Queue& queue, int producers, int consumers, int items) {
  std::vector<std::vector<int>> got(static_cast<std::size_t>(consumers));
  std::vector<std::thread> putting;
  std::vector<std::thread> getting;
  for (auto& list : got) {
    getting.emplace_back([&] {
      while (const auto item = queue.get()) list.push_back(*item);
    });
  }
  for (int i = 0; i < producers; ++i) {
    putting.emplace_back([&, i] {
      for (int item = i; item < items; item += producers) ASSERT_EQ(queue.put(int{item}), QueueStatus::done);
    });
  }
  for (auto& thread : putting) thread.join();
  queue.close();
  for (auto& thread : getting) thread.join();
  return got;
}

void expect_each_once_and_in_order(const std::vector<std::vector<int>>& got, int producers, int items) {
  std::vector<int> times(static_cast<std::size_t>(items), 0);
  for (const auto& list : got) {
    std::vector<int> last(static_cast<std::size_t>(producers), -1);
    for (const int item : list) {
      ++times[static_cast<std::size_t>(item)];
      int& before = last[static_cast<std::size_t>(item % producers)];
      EXPECT_LT(before, item);  // one producer's items reach a consumer in the order in which they were put
      before = item;
    }
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), items);
}

// What a kind may lose or double depends on the kind.
template <class Kind>
class BoundedQueues : public testing::Test {};
TYPED_TEST_SUITE(BoundedQueues, FirstInFirstOut<int>);

TYPED_TEST(BoundedQueues, OneToOneLosesAndDoublesNothing) {
  for (const std::int64_t capacity : {1, 2, 3, 64}) {
    SCOPED_TRACE("capacity " + std::to_string(capacity));
    BoundedQueue<TypeParam> queue(capacity, NotRecorded{}, capacity);
    const auto got = transfer(queue, 1, 1, 20000);
    expect_each_once_and_in_order(got, 1, 20000);
  }
}

template <class Kind>
class CrowdedQueues : public testing::Test {};
TYPED_TEST_SUITE(CrowdedQueues, ManyToMany<int>);

TYPED_TEST(CrowdedQueues, ManyToManyLosesAndDoublesNothing) {
  for (const std::int64_t capacity : {1, 2, 3, 64}) {
    SCOPED_TRACE("capacity " + std::to_string(capacity));
    BoundedQueue<TypeParam> queue(capacity, NotRecorded{}, capacity);
    const auto got = transfer(queue, 6, 6, 12000);
    expect_each_once_and_in_order(got, 6, 12000);
  }
}

/// Sets capacities from 1 to `most` in a scattered order, until it goes.
template <class Queue>
class ChangingCapacity {
 public:
  ChangingCapacity(Queue& queue, std::int64_t most)
      : thread_([this, &queue, most] {
          for (std::int64_t i = 0; !over_.load(); ++i) {
            queue.set_capacity(1 + i * 7 % most);
            std::this_thread::yield();
          }
        }) {}
  ~ChangingCapacity() {
    over_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TYPED_TEST(BoundedQueues, OneToOneLosesNothingWhileTheCapacityChanges) {
  BoundedQueue<TypeParam> queue(2, NotRecorded{}, 32);
  const ChangingCapacity changing(queue, 32);
  expect_each_once_and_in_order(transfer(queue, 1, 1, 20000), 1, 20000);
}

TYPED_TEST(CrowdedQueues, NothingIsLostWhileTheCapacityChanges) {
  BoundedQueue<TypeParam> queue(2, NotRecorded{}, 32);
  const ChangingCapacity changing(queue, 32);
  expect_each_once_and_in_order(transfer(queue, 4, 4, 12000), 4, 12000);
}

/// Whoever was told "done" has its item taken, by whomever; whoever was not still has it.
TYPED_TEST(CrowdedQueues, ClosingAmidPutsLosesNothingThatWasAccepted) {
  for (int round = 0; round < 40; ++round) {
    BoundedQueue<TypeParam> queue(4, NotRecorded{}, 4);
    std::atomic<std::int64_t> put_sum{0};
    std::atomic<std::int64_t> got_sum{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int item = i;; item += 4) {
          if (queue.put(int{item}) != QueueStatus::done) break;
          put_sum.fetch_add(item);
        }
      });
      threads.emplace_back([&] {
        while (const auto item = queue.get()) got_sum.fetch_add(*item);
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    queue.close();
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(put_sum.load(), got_sum.load());
  }
}

TYPED_TEST(BoundedQueues, ClosingFromOutsideLosesNothingThatWasAccepted) {
  for (int round = 0; round < 100; ++round) {
    BoundedQueue<TypeParam> queue(4, NotRecorded{}, 4);
    int put = 0;
    int got = 0;
    std::thread producer([&] {
      while (queue.put(int{put}) == QueueStatus::done) ++put;
    });
    std::thread consumer([&] {
      while (queue.get()) ++got;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    queue.close();
    producer.join();
    consumer.join();
    ASSERT_EQ(put, got);
  }
}

/// Puts and gets that give up, try again, and give up: nothing is taken twice, nobody sleeps for good.
TYPED_TEST(CrowdedQueues, ImpatientCallsLoseAndDoubleNothing) {
  constexpr int kItems = 6000;
  BoundedQueue<TypeParam> queue(2, NotRecorded{}, 2);
  std::atomic<int> got{0};
  std::vector<std::atomic<int>> times(kItems);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int item = i; item < kItems; item += 3) {
        while (queue.put(int{item}, after(std::chrono::microseconds(item % 5))) != QueueStatus::done) {
        }
      }
    });
    threads.emplace_back([&] {
      std::optional<int> out;
      for (;;) {
        const QueueStatus status = queue.get(out, after(std::chrono::microseconds(got.load() % 7)));
        if (status == QueueStatus::closed) break;
        if (status != QueueStatus::done) continue;
        times[static_cast<std::size_t>(*out)].fetch_add(1);
        if (got.fetch_add(1) + 1 == kItems) queue.close();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& count : times) ASSERT_EQ(count.load(), 1);
}

TEST(BoundedQueue, OwnsWhatItHolds) {
  int alive = 0;
  {
    BoundedQueue<MpmcRing<Counted>> queue(2);
    EXPECT_EQ(queue.put(Counted(1, &alive)), QueueStatus::done);
    EXPECT_EQ(queue.put(Counted(2, &alive)), QueueStatus::done);
    Counted mine(3, &alive);
    EXPECT_EQ(queue.put(std::move(mine), after(0ns)), QueueStatus::timed_out);
    EXPECT_EQ(mine.value(), 3);
    EXPECT_EQ(alive, 3);
  }
  EXPECT_EQ(alive, 0);
}

TEST(BoundedQueue, ReorderBufferLosesNothingThatWasAcceptedWhenItIsClosedAmidPuts) {
  for (int round = 0; round < 40; ++round) {
    BoundedQueue<ReorderBuffer<std::uint64_t>> queue(4, NotRecorded{}, 8);
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> put_sum{0};
    std::atomic<std::uint64_t> got_sum{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const std::uint64_t number = next.fetch_add(1);
          if (queue.put({number, number + 1}) != QueueStatus::done) break;
          put_sum.fetch_add(number + 1);
        }
      });
    }
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (const auto item = queue.get()) {
          EXPECT_EQ(item->item, item->number + 1);
          got_sum.fetch_add(item->item);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    queue.set_capacity(1 + round % 8);
    queue.close();
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(put_sum.load(), got_sum.load());
  }
}

TEST(BoundedQueue, ReordersWhatManyWorkersFinishInAnyOrder) {
  constexpr std::uint64_t kItems = 8000;
  for (const std::int64_t window : {1, 2, 5, 64}) {
    SCOPED_TRACE("window " + std::to_string(window));
    BoundedQueue<ReorderBuffer<std::uint64_t>> queue(window, NotRecorded{}, 2 * window);
    const ChangingCapacity changing(queue, 2 * window);
    std::atomic<std::uint64_t> next{0};
    std::vector<std::thread> workers;
    for (int i = 0; i < 6; ++i) {
      workers.emplace_back([&] {
        for (std::uint64_t number = next.fetch_add(1); number < kItems; number = next.fetch_add(1)) {
          ASSERT_EQ(queue.put({number, number * 3}), QueueStatus::done);
        }
      });
    }
    for (std::uint64_t expected = 0; expected < kItems; ++expected) {
      const auto item = queue.get();
      ASSERT_TRUE(item.has_value());
      ASSERT_EQ(item->number, expected);
      ASSERT_EQ(item->item, expected * 3);
    }
    for (auto& worker : workers) worker.join();
    queue.close();
    EXPECT_EQ(queue.get(), std::nullopt);
  }
}

}  // namespace
}  // namespace headrace::queues
