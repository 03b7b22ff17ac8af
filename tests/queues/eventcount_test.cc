#include "headrace/queues/eventcount.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/queues/futex_word.h"

namespace headrace::queues {
namespace {

using namespace std::chrono_literals;

/// A word on which nobody really sleeps: counts what would be system calls.
class CountingWord {
 public:
  static inline int wakes = 0;

  std::uint64_t load() const noexcept { return value_; }
  std::uint64_t fetch_add(std::uint64_t by) noexcept { return std::exchange(value_, value_ + by); }
  bool compare_exchange(std::uint64_t& expected, std::uint64_t desired) noexcept {
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  void fence() const noexcept {}
  Sleep sleep_while(std::uint32_t low, FutexWord::Clock::time_point) noexcept {
    return static_cast<std::uint32_t>(value_) == low ? Sleep::timed_out : Sleep::changed;
  }
  void wake(int) noexcept { ++wakes; }

 private:
  std::uint64_t value_ = 0;
};

TEST(EventCount, WaiterThatIsCalledAndHasNotRunYetIsCalledOnce) {
  BasicEventCount<CountingWord> event;
  CountingWord::wakes = 0;
  const auto ticket = event.prepare();
  for (int i = 0; i < 5; ++i) event.notify_one();
  event.notify_all();
  EXPECT_EQ(CountingWord::wakes, 1);
  EXPECT_EQ(event.wait(ticket, kNever), Wake::notified);
}

TEST(EventCount, WhoeverLeftIsNotCalledHoweverItLeft) {
  BasicEventCount<CountingWord> event;
  for (int round = 0; round < 70'000; ++round) {  // more than fit into its count, were they to pile up
    const auto called = event.prepare();
    const auto overtaken = event.prepare();
    const auto cancelled = event.prepare();
    event.notify_one();
    const auto late = event.prepare();
    ASSERT_EQ(event.wait(called, kNever), Wake::notified);
    ASSERT_EQ(event.wait(overtaken, kNever), Wake::notified);
    event.cancel(cancelled);
    ASSERT_EQ(event.wait(late, kNever), Wake::timed_out);
    CountingWord::wakes = 0;
    event.notify_one();
    event.notify_all();
    ASSERT_EQ(CountingWord::wakes, 0);
  }
}

TEST(EventCount, EveryWaiterThatIsNotCalledYetIsCalled) {
  BasicEventCount<CountingWord> event;
  CountingWord::wakes = 0;
  event.prepare();
  event.notify_one();
  event.prepare();  // asleep for all that is known
  event.notify_one();
  EXPECT_EQ(CountingWord::wakes, 2);
  event.notify_one();
  EXPECT_EQ(CountingWord::wakes, 2);
}

TEST(EventCount, NotificationAfterTheTicketIsNotLost) {
  EventCount event;
  const auto ticket = event.prepare();
  event.notify_one();
  EXPECT_EQ(event.wait(ticket, kNever), Wake::notified);
}

TEST(EventCount, NotificationBeforeTheTicketDoesNotCount) {
  EventCount event;
  event.notify_one();
  const auto ticket = event.prepare();
  EXPECT_EQ(event.wait(ticket, EventCount::Clock::now() + 1ms), Wake::timed_out);
}

TEST(EventCount, DeadlineInThePastReturnsAtOnce) {
  EventCount event;
  EXPECT_EQ(event.wait(event.prepare(), EventCount::Clock::now() - 1s), Wake::timed_out);
}

TEST(EventCount, CancelledAndTimedOutTicketsLeaveNoWaiterBehind) {
  EventCount event;
  for (int i = 0; i < 100; ++i) {
    event.cancel(event.prepare());
    EXPECT_EQ(event.wait(event.prepare(), EventCount::Clock::now()), Wake::timed_out);
  }
  // Were a waiter still counted, this would change the epoch and the next ticket would not time out.
  const auto ticket = event.prepare();
  EXPECT_EQ(event.wait(ticket, EventCount::Clock::now() + 1ms), Wake::timed_out);
}

TEST(EventCount, NotifyAllWakesEveryWaiter) {
  EventCount event;
  std::atomic<bool> go{false};
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!go.load()) {
        const auto ticket = event.prepare();
        if (go.load()) {
          event.cancel(ticket);
          break;
        }
        event.wait(ticket, kNever);
      }
      woken.fetch_add(1);
    });
  }
  std::this_thread::sleep_for(5ms);
  go.store(true);
  event.notify_all();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), 8);
}

TEST(EventCount, SignalInterruptsTheWait) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  struct sigaction before{};
  sigaction(SIGUSR1, &action, &before);
  EventCount event;
  std::atomic<bool> interrupted{false};
  std::thread waiter([&] {
    while (!interrupted.load()) {
      const Wake wake = event.wait(event.prepare(), EventCount::Clock::now() + 10s);
      if (wake == Wake::interrupted) interrupted.store(true);
    }
  });
  while (!interrupted.load()) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(1ms);
  }
  waiter.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(interrupted.load());
}

// A model of what queues do with it: tokens are given out under random schedules of waiters that give up,
// time out or take, and of notifiers. A lost wake-up would leave a token while everybody sleeps, and the test
// would never end.
TEST(EventCount, RandomSchedulesNeverLoseAToken) {
  constexpr int kTokens = 4000;
  constexpr int kWaiters = 6;  // more than the cores of the machine this runs on
  std::random_device seed_source;
  const unsigned seed = seed_source();
  SCOPED_TRACE("seed " + std::to_string(seed));
  EventCount event;
  std::atomic<int> available{0};
  std::atomic<int> taken{0};
  const auto take = [&] {
    int seen = available.load();
    while (seen > 0 && !available.compare_exchange_weak(seen, seen - 1)) {
    }
    return seen > 0;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(seed + static_cast<unsigned>(i));
      while (taken.load() < kTokens) {
        if (take()) {
          taken.fetch_add(1);
          if (taken.load() >= kTokens) event.notify_all();
          continue;
        }
        const auto ticket = event.prepare();
        if (available.load() > 0 || taken.load() >= kTokens || random() % 16 == 0) {
          event.cancel(ticket);
          continue;
        }
        const bool hurried = random() % 4 == 0;
        event.wait(ticket,
                   hurried ? EventCount::Clock::now() + std::chrono::microseconds(random() % 50) : kNever);
      }
      event.notify_all();
    });
  }
  std::mt19937 random(seed);
  for (int i = 0; i < kTokens; ++i) {
    available.fetch_add(1);
    event.notify_one();
    if (random() % 8 == 0) std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), kTokens);
  EXPECT_EQ(available.load(), 0);
}

}  // namespace
}  // namespace headrace::queues
