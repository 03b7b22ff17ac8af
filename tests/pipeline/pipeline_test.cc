#include "headrace/pipeline/pipeline.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/numbers.h"

namespace headrace::pipeline {
namespace {

template <class T>
std::vector<T> all(Pipeline<T>& pipeline) {
  std::vector<T> out;
  while (auto item = pipeline.next()) out.push_back(std::move(*item));
  return out;
}

/// Works a little longer for some items, so that workers overtake each other.
int slow_double(int item) {
  std::this_thread::sleep_for(std::chrono::microseconds(item % 7 == 0 ? 300 : 20));
  return 2 * item;
}

std::vector<int> doubled(int count) {
  std::vector<int> out = numbers(count);
  for (int& item : out) item *= 2;
  return out;
}

TEST(Pipeline, DeliversTheSourcesItemsInOrder) {
  auto pipeline = source("numbers", numbers(1000));
  EXPECT_EQ(all(pipeline), numbers(1000));
}

TEST(Pipeline, EveryPassBeginsAnew) {
  auto pipeline = source("numbers", numbers(10)).map("double", slow_double);
  EXPECT_EQ(all(pipeline), doubled(10));
  EXPECT_EQ(all(pipeline), doubled(10));
  EXPECT_EQ(all(pipeline), doubled(10));
}

TEST(Pipeline, OrderedMapKeepsTheOrderWhateverTheWorkers) {
  for (const int workers : {1, 2, 5}) {
    auto pipeline = source("numbers", numbers(300)).map("double", slow_double, {.workers = workers});
    EXPECT_EQ(all(pipeline), doubled(300)) << workers;
  }
}

TEST(Pipeline, UnorderedMapDeliversEveryItemOnce) {
  auto pipeline =
      source("numbers", numbers(300)).map("double", slow_double, {.workers = 4, .ordered = false});
  std::vector<int> got = all(pipeline);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, doubled(300));
}

TEST(Pipeline, OrderedAfterUnorderedLosesNothing) {
  auto pipeline = source("numbers", numbers(300))
                      .map("first", slow_double, {.workers = 3, .ordered = false})
                      .map("second", [](int item) { return item / 2; }, {.workers = 3});
  std::vector<int> got = all(pipeline);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, numbers(300));
}

/// A worker that numbers its item and then loses the core is overtaken by more items than both queues hold:
/// whoever waits for the number must not keep it out.
TEST(Pipeline, AnOvertakenItemBeforeAnOrderedMapHoldsNothingUp) {
  const auto spin = [](int item) {
    if (item % 50 == 0) std::this_thread::yield();
    return item;
  };
  for (int round = 0; round < 40; ++round) {
    auto mapped = source("numbers", numbers(400))
                      .map("first", spin, {.workers = 4, .ordered = false, .capacity = 1})
                      .map("second", spin, {.workers = 4, .capacity = 1});
    EXPECT_EQ(all(mapped).size(), 400U);
    auto generated = generator<int>("numbers",
                                    [](const Shard&) {
                                      int left = 100;
                                      return [left]() mutable {
                                        return left-- > 0 ? std::optional<int>(left) : std::nullopt;
                                      };
                                    },
                                    {.workers = 4, .capacity = 1})
                         .map("second", spin, {.workers = 4, .capacity = 1});
    EXPECT_EQ(all(generated).size(), 400U);
  }
}

TEST(Pipeline, CarriesItemsThatOnlyMove) {
  auto pipeline = source("numbers", numbers(50))
                      .map("box", [](int item) { return std::make_unique<int>(item); }, {.workers = 2})
                      .batch(4);
  int next = 0;
  while (auto batch = pipeline.next()) {
    for (const auto& item : *batch) EXPECT_EQ(*item, next++);
  }
  EXPECT_EQ(next, 50);
}

TEST(Pipeline, BatchesHoldTheirSizeAndTheLastOneTheRest) {
  auto pipeline = source("numbers", numbers(10)).batch(4);
  const auto batches = all(pipeline);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[1], (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(batches[2], (std::vector<int>{8, 9}));
  auto whole_ones = source("numbers", numbers(10)).batch(4, BatchOptions{.drop_last = true});
  EXPECT_EQ(all(whole_ones).size(), 2U);
}

TEST(Pipeline, CollateMakesTheBatch) {
  auto pipeline = source("numbers", numbers(9)).batch(3, [](std::vector<int>&& items) {
    return std::accumulate(items.begin(), items.end(), 0);
  });
  EXPECT_EQ(all(pipeline), (std::vector<int>{3, 12, 21}));
}

TEST(Pipeline, FilterLetsThroughWhatItsBodySays) {
  auto pipeline = source("numbers", numbers(100))
                      .filter("even", [](const int& item) { return item % 2 == 0; })
                      .map("half", [](int item) { return item / 2; }, {.workers = 3});
  EXPECT_EQ(all(pipeline), numbers(50));
}

TEST(Pipeline, ShuffleGivesTheSameOrderForTheSameSeedWhateverTheWorkers) {
  const auto order = [](std::uint64_t seed, int workers, int pass) {
    auto pipeline =
        source("numbers", numbers(500)).map("double", slow_double, {.workers = workers}).shuffle(50, seed);
    std::vector<int> got;
    for (int i = 0; i <= pass; ++i) got = all(pipeline);
    return got;
  };
  const std::vector<int> first = order(7, 1, 0);
  EXPECT_EQ(first, order(7, 4, 0));
  EXPECT_EQ(order(7, 2, 1), order(7, 3, 1));
  EXPECT_NE(first, order(8, 1, 0));
  EXPECT_NE(first, order(7, 1, 1)) << "another order in the second pass";
  EXPECT_NE(first, doubled(500));
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), doubled(500).begin()));
}

TEST(Pipeline, ShuffleCanRepeatItsOrder) {
  auto pipeline = source("numbers", numbers(100)).shuffle(20, 3, {.every_pass_alike = true});
  const std::vector<int> first = all(pipeline);
  EXPECT_EQ(first, all(pipeline));
}

TEST(Pipeline, GeneratorsWithSeveralWorkersMakeTheirShards) {
  auto pipeline =
      generator<int>("shards",
                     [](const Shard& shard) -> ItemMaker<int> {
                       return [at = shard.index, step = shard.count]() mutable -> std::optional<int> {
                         if (at >= 100) return std::nullopt;
                         return std::exchange(at, at + step);
                       };
                     },
                     {.workers = 3});
  std::vector<int> got = all(pipeline);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, numbers(100));
}

ItemMaker<int> count_for_ever(const Shard&) {
  return [at = 0]() mutable -> std::optional<int> { return at++; };
}

TEST(Pipeline, AGeneratorKeepsItsWorkersBecauseTheShardsDependOnThem) {
  auto pipeline = generator<int>(
      "shards", [](const Shard& shard) { return [at = shard.index]() -> std::optional<int> { return at; }; },
      {.workers = 3});
  ASSERT_TRUE(pipeline.next());
  EXPECT_THROW(pipeline.runtime().set_workers("shards", 5), UsageError);
  EXPECT_THROW(pipeline.runtime().set_workers("shards", 1), UsageError);
  pipeline.runtime().set_workers("shards", 3);
  EXPECT_EQ(pipeline.runtime().workers("shards"), 3);
}

TEST(Pipeline, AnEndlessSourceEndsWithTheLoop) {
  auto pipeline =
      generator<int>("endless", count_for_ever).map("double", slow_double, {.workers = 2}).batch(5);
  int seen = 0;
  for (auto& batch : pipeline) {
    EXPECT_EQ(batch.size(), 5U);
    if (++seen == 4) break;
  }
  pipeline.finish();
  EXPECT_FALSE(pipeline.runtime().in_pass());
  EXPECT_EQ(pipeline.next()->front(), 0) << "the next pass begins at the beginning";
}

TEST(Pipeline, TheFirstExceptionReachesTheSinkWithItsPlace) {
  auto pipeline = source("numbers", numbers(1000))
                      .map("fragile",
                           [](int item) {
                             if (item == 17) throw std::runtime_error("broken file");
                             return item;
                           },
                           {.workers = 3})
                      .batch(2);
  try {
    all(pipeline);
    FAIL() << "no exception";
  } catch (const OperatorError& error) {
    EXPECT_EQ(error.operator_name(), "fragile");
    EXPECT_EQ(error.item(), 17U);
    EXPECT_NE(std::string(error.what()).find("broken file"), std::string::npos) << error.what();
    EXPECT_THROW(std::rethrow_exception(error.cause()), std::runtime_error);
  }
  EXPECT_FALSE(pipeline.runtime().in_pass());
}

TEST(Pipeline, ExceptionsOfEveryOperatorSurface) {
  const auto thrower = [](auto&&...) -> int { throw std::logic_error("no"); };
  const auto names_of = [](auto pipeline) {
    try {
      while (pipeline.next()) {
      }
    } catch (const OperatorError& error) {
      return error.operator_name();
    }
    return std::string("none");
  };
  EXPECT_EQ(names_of(generator<int>("made",
                                    [&](const Shard&) -> ItemMaker<int> {
                                      return [&]() -> std::optional<int> { return thrower(); };
                                    })),
            "made");
  EXPECT_EQ(names_of(generator<int>("begun",
                                    [&](const Shard&) -> ItemMaker<int> {
                                      thrower();
                                      return {};
                                    })),
            "begun");
  EXPECT_EQ(names_of(source("s", numbers(9)).filter("f", [&](const int&) { return thrower() > 0; })), "f");
  EXPECT_EQ(names_of(source("s", numbers(9)).batch(2, [&](std::vector<int>&&) { return thrower(); })),
            "batch");
}

TEST(Pipeline, SkippedItemsLeaveNoGapInAnOrder) {
  auto pipeline = source("numbers", numbers(100))
                      .map("fragile",
                           [](int item) {
                             if (item % 10 == 3) throw std::runtime_error("broken");
                             return item;
                           },
                           {.workers = 4, .on_error = OnError::skip})
                      .map("after", [](int item) { return item; }, {.workers = 3});
  std::vector<int> expected;
  for (const int item : numbers(100)) {
    if (item % 10 != 3) expected.push_back(item);
  }
  EXPECT_EQ(all(pipeline), expected);
}

TEST(Pipeline, WorkersCanBeAddedAndTakenAwayDuringAPass) {
  auto pipeline = source("numbers", numbers(2000)).map("double", slow_double, {.workers = 1});
  std::vector<int> got;
  int step = 0;
  while (auto item = pipeline.next()) {
    got.push_back(*item);
    if (++step % 100 == 0) pipeline.runtime().set_workers("double", 1 + step / 100 % 6);
  }
  EXPECT_EQ(got, doubled(2000));
}

TEST(Pipeline, CapacityCanBeChangedDuringAPass) {
  auto pipeline =
      source("numbers", numbers(2000), {.capacity = 2}).map("double", slow_double, {.workers = 3});
  std::vector<int> got;
  int step = 0;
  while (auto item = pipeline.next()) {
    got.push_back(*item);
    if (++step % 50 == 0) pipeline.runtime().set_capacity("numbers", 1 + step / 50 % 9);
    if (step % 70 == 0) pipeline.runtime().set_capacity("double", 1 + step / 70 % 9);
  }
  EXPECT_EQ(got, doubled(2000));
  EXPECT_THROW(pipeline.runtime().set_capacity("double", 0), UsageError);
  EXPECT_THROW(pipeline.runtime().set_capacity("nobody", 3), UsageError);
}

TEST(Pipeline, CanBeStoppedFromAnotherThread) {
  auto pipeline = generator<int>("endless", count_for_ever).map("double", slow_double, {.workers = 2});
  // Again and again: the first call may come before the pass has begun.
  std::atomic<bool> ended{false};
  std::thread stopper([&] {
    while (!ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pipeline.stop();
    }
  });
  while (pipeline.next()) {
  }
  ended = true;
  stopper.join();
  EXPECT_FALSE(pipeline.runtime().in_pass());
}

TEST(Pipeline, CanBeStoppedWhileItsSinkSleeps) {
  std::atomic<bool> release{false};
  std::atomic<bool> begun{false};
  auto pipeline = generator<int>("stuck", [&](const Shard&) -> ItemMaker<int> {
    return [&]() -> std::optional<int> {
      begun = true;
      while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return std::nullopt;
    };
  });
  std::thread stopper([&] {
    while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pipeline.stop();
    release = true;
  });
  EXPECT_FALSE(pipeline.next());
  stopper.join();
}

TEST(Pipeline, AWaitCanTimeOutAndGoOn) {
  auto pipeline = generator<int>("slow", [](const Shard&) -> ItemMaker<int> {
    return [done = false]() mutable -> std::optional<int> {
      if (std::exchange(done, true)) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return 5;
    };
  });
  pipeline.begin_next();
  std::optional<int> item;
  int timeouts = 0;
  while (pipeline.wait_next(item, queues::after(std::chrono::milliseconds(5))) ==
         queues::QueueStatus::timed_out)
    ++timeouts;
  EXPECT_EQ(item, 5);
  EXPECT_GT(timeouts, 0);
}

TEST(Pipeline, AForkedChildGetsAnErrorAndLeavesAtOnce) {
  auto pipeline =
      source("numbers", numbers(1000)).map("double", slow_double, {.workers = 2}).shuffle(8, 0).batch(4);
  pipeline.next();  // a pass runs, its workers wait for room
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // rather than for ever
    int status = 1;
    {
      auto of_the_parent = std::move(pipeline);
      of_the_parent.stop();
      of_the_parent.finish();
      try {
        of_the_parent.next();
      } catch (const UsageError&) {
        status = 0;
      }
    }
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child's exit status";
  EXPECT_EQ(all(pipeline).size(), 249u) << "the parent's pass goes on";
}

TEST(Pipeline, ArenaBodiesAndTbbQueuesGiveTheSame) {
  auto pipeline =
      source("numbers", numbers(300), {.queue = QueueChoice::tbb})
          .map("double", slow_double, {.workers = 8, .executor = Executor::arena})
          .map("again", [](int item) { return item; }, {.workers = 2, .queue = QueueChoice::ring});
  EXPECT_EQ(all(pipeline), doubled(300));
}

TEST(Pipeline, AQueueOfOneThreadOnEitherSideGivesTheSame) {
  auto pipeline = source("numbers", numbers(300), {.queue = QueueChoice::spsc})
                      .map("double", slow_double, {.capacity = 2, .queue = QueueChoice::spsc})
                      .map("again", [](int item) { return item; });
  EXPECT_EQ(all(pipeline), doubled(300));
  pipeline.runtime().set_capacity("double", 5);
  EXPECT_EQ(all(pipeline), doubled(300)) << "a second pass";
  for (int i = 0; i < 7; ++i) pipeline.next();
  pipeline.finish();
  EXPECT_EQ(all(pipeline), doubled(300)) << "after a pass that was left";
}

TEST(Pipeline, AQueueOfOneThreadOnEitherSideRefusesMore) {
  const MapOptions two{.workers = 2};
  EXPECT_THROW(source("s", numbers(3), {.queue = QueueChoice::spsc}).map("m", slow_double, two), UsageError);
  EXPECT_THROW(source("s", numbers(3)).map("m", slow_double, {.workers = 2, .queue = QueueChoice::spsc}),
               UsageError);
  auto pipeline = source("s", numbers(3)).map("m", slow_double, {.queue = QueueChoice::spsc}).batch(1);
  EXPECT_THROW(pipeline.runtime().set_workers("m", 2), UsageError);
}

TEST(Pipeline, RefusesWhatCannotBe) {
  EXPECT_THROW(source("s", numbers(3)).map("m", slow_double, {.workers = 0}), UsageError);
  EXPECT_THROW(source("s", numbers(3)).map("m", slow_double, {.workers = 10'000}), UsageError);
  EXPECT_THROW(source("s", numbers(3)).map("m", slow_double, {.capacity = -1}), UsageError);
  EXPECT_THROW(source("s", numbers(3)).map("", slow_double), UsageError);
  EXPECT_THROW(source("s", numbers(3)).batch(0), UsageError);
  EXPECT_THROW(source("s", numbers(3)).shuffle(0, 1), UsageError);
  EXPECT_THROW(source("s", numbers(3)).prefetch(0), UsageError);
  auto pipeline = source("s", numbers(3)).batch(1);
  EXPECT_THROW(pipeline.runtime().set_workers("batch", 2), UsageError);
}

TEST(Pipeline, NamesThatAreTakenAreNumbered) {
  auto pipeline = source("s", numbers(3)).map("m", slow_double).map("m", slow_double).batch(1);
  EXPECT_EQ(pipeline.runtime().names(), (std::vector<std::string>{"s", "m", "m#2", "batch"}));
}

int threads_now() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

TEST(Pipeline, AThousandPassesLeaveNoThreadBehind) {
  const int before = threads_now();
  {
    auto pipeline =
        source("numbers", numbers(20)).map("double", [](int i) { return i; }, {.workers = 3}).batch(4);
    all(pipeline);
    const int during = threads_now();
    for (int pass = 0; pass < 500; ++pass) {
      pipeline.next();
      if (pass % 2 == 0) pipeline.finish();
    }
    EXPECT_EQ(threads_now(), during) << "passes run on the same threads";
  }
  for (int i = 0; i < 500; ++i) {
    auto pipeline =
        source("numbers", numbers(20)).map("double", [](int i) { return i; }, {.workers = 3}).batch(4);
    pipeline.next();
  }
  EXPECT_LE(threads_now(), before + 2) << "the recorder's own sampler threads may run";
}

}  // namespace
}  // namespace headrace::pipeline
