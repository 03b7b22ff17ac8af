// The event count's own code under schedules that are drawn: a lost wake-up shows as threads that all sleep.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "headrace/queues/eventcount.h"
#include "headrace/queues/futex_word.h"
#include "queues/schedule.h"

namespace headrace::queues {
namespace {

using ModelEventCount = BasicEventCount<ScheduledWord>;
constexpr auto kSometime = ModelEventCount::Clock::time_point();

unsigned first_seed() {
  std::random_device device;
  return device();
}

/// Tokens that are given out and taken; one step for each look.
struct Tokens {
  int available = 0;
  bool any() const {
    Schedule::step();
    return available > 0;
  }
  bool take() {
    Schedule::step();
    if (available == 0) return false;
    --available;
    return true;
  }
  void give() {
    Schedule::step();
    ++available;
  }
};

/// Takes `count` tokens as the header says it is to be done; some waits have a deadline, some are given up.
void take_all(ModelEventCount& event, Tokens& tokens, int count) {
  while (count > 0 && !Schedule::stuck()) {
    if (tokens.take()) {
      --count;
      continue;
    }
    const auto ticket = event.prepare();
    if (tokens.any() || Schedule::draw(8) == 0) {
      event.cancel(ticket);
    } else {
      event.wait(ticket, Schedule::draw(4) == 0 ? kSometime : kNever);
    }
  }
}

TEST(EventCountModel, EveryTokenIsTakenWhateverTheSchedule) {
  const unsigned seed = first_seed();
  for (unsigned i = 0; i < 400; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + i));
    Schedule schedule(seed + i);
    ModelEventCount event;
    Tokens tokens;
    const int waiters = 1 + static_cast<int>(i % 4);
    for (int waiter = 0; waiter < waiters; ++waiter) schedule.add([&] { take_all(event, tokens, 2); });
    for (int giver = 0; giver < 2; ++giver) {
      schedule.add([&, waiters] {
        for (int token = 0; token < waiters; ++token) {
          tokens.give();
          event.notify_one();
        }
      });
    }
    ASSERT_TRUE(schedule.run()) << "a token was left while everybody slept";
    ASSERT_EQ(tokens.available, 0);
  }
}

TEST(EventCountModel, NotifyAllLeavesNobodyAsleep) {
  const unsigned seed = first_seed();
  for (unsigned i = 0; i < 400; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + i));
    Schedule schedule(seed + i);
    ModelEventCount event;
    bool over = false;
    const auto ended = [&] {
      Schedule::step();
      return over;
    };
    for (int waiter = 0; waiter < 3; ++waiter) {
      schedule.add([&] {
        while (!ended() && !Schedule::stuck()) {
          const auto ticket = event.prepare();
          if (ended()) {
            event.cancel(ticket);
          } else {
            event.wait(ticket, Schedule::draw(4) == 0 ? kSometime : kNever);
          }
        }
      });
    }
    schedule.add([&] {
      event.notify_one();  // one that means nothing, before
      Schedule::step();
      over = true;
      event.notify_all();
    });
    ASSERT_TRUE(schedule.run());
  }
}

// The model has to be able to find what it looks for: without the second look a notification between the
// first one and the ticket is lost.
TEST(EventCountModel, FindsTheLostWakeUpOfAWaiterThatDoesNotLookAgain) {
  int stuck = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Schedule schedule(seed);
    ModelEventCount event;
    Tokens tokens;
    schedule.add([&] {
      while (!tokens.take() && !Schedule::stuck()) event.wait(event.prepare(), kNever);
    });
    schedule.add([&] {
      tokens.give();
      event.notify_one();
    });
    if (!schedule.run()) ++stuck;
  }
  EXPECT_GT(stuck, 0);
  EXPECT_LT(stuck, 100);
}

}  // namespace
}  // namespace headrace::queues
