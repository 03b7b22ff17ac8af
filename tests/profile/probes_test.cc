#include "headrace/profile/probes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "headrace/profile/current.h"
#include "headrace/profile/figures.h"
#include "headrace/profile/snapshot.h"
#include "profile/scratch_folder.h"
#include "support/current_run.h"

namespace headrace::profile {
namespace {

using metrics::WorkerState;

/// Figures as a reader sees them.
class Probes : public CurrentRun {
 protected:
  static const OperatorProfile* find(const Profile& profile, const std::string& name) {
    for (const OperatorProfile& op : profile.operators) {
      if (op.name == name) return &op;
    }
    return nullptr;
  }
  /// Calls of one operator in a session, over all its cells.
  static std::uint64_t items_of(Session& session, const std::string& name) {
    SegmentImage image;
    image.read_memory(session.segment().data(), session.segment().size());
    std::uint64_t items = 0;
    for (const auto& cell : image.cells()) {
      if (cell.owner.load() != 0 && image.operators()[cell.operator_id.load()].name.view() == name) {
        items += cell.items.load();
      }
    }
    return items;
  }
  std::uint64_t items_of(const std::string& name) { return items_of(*session_, name); }
  int workers(metrics::WorkerLife life) {
    int count = 0;
    for (std::uint32_t i = 0; i < kMaxWorkers; ++i) {
      count += session_->segment().workers()[i].life.load() == static_cast<std::uint32_t>(life) ? 1 : 0;
    }
    return count;
  }
  static void call(OperatorHandle& op, bool failed = false) {
    if (op.begin()) op.end(failed);
  }
};

TEST_F(Probes, CountsCallsOfManyThreads) {
  OperatorHandle decode("decode", "map", 1);
  OperatorHandle resize("resize", "map", 2);
  constexpr int kThreads = 8;
  constexpr int kCalls = 2000;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      SegmentImage image;
      image.read_memory(session_->segment().data(), session_->segment().size());
      SegmentFigures::of(image, 0);
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kCalls; ++k) {
        ASSERT_TRUE(decode.begin());
        call(resize, k % 10 == 0);
        decode.end(false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  reader.join();
  EXPECT_EQ(items_of("decode"), static_cast<std::uint64_t>(kThreads * kCalls));
  EXPECT_EQ(items_of("resize"), static_cast<std::uint64_t>(kThreads * kCalls));
  EXPECT_EQ(workers(metrics::WorkerLife::finished), kThreads) << "a thread's end is noted";
}

TEST_F(Probes, LosesNoCallOfHundredsOfThreads) {
  OperatorHandle task("task", "map", 1);
  for (int i = 0; i < 500; ++i) std::thread([&] { call(task); }).join();
  EXPECT_EQ(items_of("task"), 500U);
  EXPECT_EQ(session_->segment().header().dropped.workers.load(), 0U);
  EXPECT_GT(session_->segment().header().retired_workers.load(), 0U);
}

TEST_F(Probes, SaysSoWhenThereAreTooManyOperators) {
  std::vector<std::unique_ptr<OperatorHandle>> operators;
  for (int i = 0; i < 500; ++i) {
    operators.push_back(std::make_unique<OperatorHandle>("operator " + std::to_string(i), "map", i));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& op : operators) call(*op);
  }
  EXPECT_EQ(items_of("operator 0"), 3U);
  EXPECT_EQ(session_->segment().header().dropped.operators.load(), 500U - kMaxOperators)
      << "each is said once";
}

TEST_F(Probes, SaysSoWhenThereAreTooManyCells) {
  std::vector<std::unique_ptr<OperatorHandle>> operators;
  for (int i = 0; i < 100; ++i) {
    operators.push_back(std::make_unique<OperatorHandle>("operator " + std::to_string(i), "map", i));
  }
  // All at the same time: nobody can be folded away.
  constexpr int kThreads = 10;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        for (auto& op : operators) call(*op);
      }
      done.fetch_add(1);
      while (done.load() < kThreads) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(session_->segment().header().dropped.cells.load(), kThreads * 100U - kMaxCells);
}

TEST_F(Probes, FollowTheCurrentSession) {
  OperatorHandle decode("decode", "map", 1);
  call(decode);
  const auto inner = Session::open({});
  CurrentSession::push(inner);
  call(decode);
  call(decode);
  CurrentSession::pop(*inner);
  call(decode);
  EXPECT_EQ(items_of("decode"), 2U);
  EXPECT_EQ(items_of(*inner, "decode"), 2U);
  inner->close();
}

TEST_F(Probes, EndWhatBeganInAnotherSession) {
  OperatorHandle decode("decode", "map", 1);
  ASSERT_TRUE(decode.begin());
  const auto inner = Session::open({});
  CurrentSession::push(inner);
  call(decode);
  CurrentSession::pop(*inner);
  decode.end(false);  // its session's probe is gone: not counted, and nothing else breaks
  call(decode);
  EXPECT_EQ(items_of(*inner, "decode"), 1U);
  EXPECT_EQ(items_of("decode"), 1U);
  inner->close();
}

TEST_F(Probes, SwitchSessionsUnderLoad) {
  OperatorHandle decode("decode", "map", 1);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> calls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        call(decode);
        calls.fetch_add(1);
      }
    });
  }
  std::uint64_t elsewhere = 0;
  for (int i = 0; i < 20; ++i) {
    const auto inner = Session::open({});
    CurrentSession::push(inner);
    std::this_thread::yield();
    CurrentSession::pop(*inner);
    inner->close();
    // Threads that follow late still write into it: what they finish is counted somewhere.
    elsewhere += items_of(*inner, "decode");
  }
  // Each thread may still be in a call of the last session: one call more than threads began in this one.
  const std::uint64_t so_far = calls.load();
  while (calls.load() <= so_far + threads.size()) std::this_thread::yield();
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(items_of("decode") + elsewhere, calls.load());
  EXPECT_GT(items_of("decode"), 0U);
}

// --- queues ---

/// The least queue that carries the instrumentation.
class PlainQueue {
 public:
  PlainQueue(std::string name, std::int64_t capacity)
      : handle(std::make_shared<QueueHandle>(std::move(name), capacity)) {}
  void put(const char* loop = nullptr) {
    const std::scoped_lock lock(mutex_);
    handle->put(++level_, 0, true, loop);
  }
  void get(const char* loop = nullptr) {
    const std::scoped_lock lock(mutex_);
    handle->get(--level_, 0, true, loop);
  }
  void drop() {
    const std::scoped_lock lock(mutex_);
    level_ = 0;
    handle->emptied();
  }
  std::shared_ptr<QueueHandle> handle;

 private:
  std::mutex mutex_;
  std::int64_t level_ = 0;
};

TEST_F(Probes, CountsQueueCallsOfManyThreads) {
  PlainQueue queue("images", 1 << 20);
  OperatorHandle decode("decode", "map", 1);
  decode.declare({}, {queue.handle});
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 1000; ++k) {
        call(decode);  // declares the queue while others use it
        if (i % 2 == 0) {
          queue.put("produce");
        } else {
          queue.handle->waiting(WorkerState::blocked_in);
          queue.handle->waited();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const metrics::QueueCell& cell = session_->segment().queues()[queue.handle->id_in(*session_)].cell;
  EXPECT_EQ(cell.puts.load(), 3000U);
  EXPECT_EQ(cell.occupancy.level.load(), 3000);
}

TEST_F(Probes, KnowsWhatIsPutBack) {
  PlainQueue queue("images", 8);
  EXPECT_FALSE(queue.handle->taken_by_this_thread());
  queue.put();
  std::thread([&] {
    queue.get("consume");
    EXPECT_TRUE(queue.handle->taken_by_this_thread());
  }).join();
  EXPECT_FALSE(queue.handle->taken_by_this_thread());
}

TEST_F(Probes, GivesAQueueOfTheNextEpochTheOldRecord) {
  int first = -1;
  {
    PlainQueue queue("images", 8);
    queue.put();
    first = queue.handle->id_in(*session_);
  }
  PlainQueue queue("images", 8);
  queue.put();
  EXPECT_EQ(queue.handle->id_in(*session_), first);
}

TEST_F(Probes, RecordsNothingOfAQueueThatIsDroppedUnused) {
  PlainQueue("images", 8).drop();
  EXPECT_EQ(workers(metrics::WorkerLife::live), 0);
  EXPECT_EQ(session_->segment().header().high_water[static_cast<std::size_t>(Section::queues)].load(), 0U);
}

// --- loops ---

/// Runs one epoch over a loader; `body` runs in each step.
template <class Body>
void epoch(const std::shared_ptr<LoaderHandle>& loader, int steps, Body&& body) {
  LoopRecorder loop(loader);
  for (int i = 0; i < steps; ++i) {
    loop.begin_wait();
    loop.end_wait(true, false);
    body(i);
  }
  loop.begin_wait();
  loop.end_wait(false, false);
}

class Loops : public Probes {
 protected:
  std::shared_ptr<LoaderHandle> loader(const std::string& name) {
    return std::make_shared<LoaderHandle>(session_, name, nullptr);
  }
  const metrics::SinkCell& sink(const LoaderHandle& of) { return *session_->sink(of.id()); }
};

TEST_F(Loops, DroppingAQueueTakesNothingFromIt) {
  const auto train = loader("train");
  PlainQueue dropped("dropped", 8);
  PlainQueue batches("batches", 8);
  std::thread([&] {
    for (int i = 0; i < 3; ++i) dropped.put("read");
    batches.put("read");
  }).join();
  LoopRecorder loop(train);
  loop.begin_wait();
  dropped.drop();
  batches.get();
  loop.end_wait(true, false);
  const int number = dropped.handle->id_in(*session_);
  const metrics::QueueCell& cell = session_->segment().queues()[number].cell;
  EXPECT_EQ(cell.occupancy.level.load(), 0);
  EXPECT_EQ(cell.gets.load(), 0U);
  EXPECT_EQ(sink(*train).queues.load(), std::uint64_t{1} << batches.handle->id_in(*session_))
      << "the loop takes from the queue that it took from, and from no other";
}

TEST_F(Loops, CountZeroOneAndManyItems) {
  const auto train = loader("train");
  epoch(train, 0, [](int) {});
  EXPECT_EQ(sink(*train).steps.load(), 0U);
  EXPECT_FALSE(session_->clock()->read(0).begun);
  epoch(train, 1, [](int) {});
  epoch(train, 100, [](int) {});
  EXPECT_EQ(sink(*train).epochs.load(), 3U);
  EXPECT_EQ(sink(*train).steps.load(), 101U);
  EXPECT_EQ(sink(*train).waits.load(), 99);
  EXPECT_EQ(sink(*train).active.load(), 0U);
  const Profile profile = read_profile(*train->epoch_starts().back().image, 0);
  EXPECT_EQ(profile.sink.steps, 1U) << "as it was when the last epoch began";
}

TEST_F(Loops, NestAndInterleave) {
  const auto train = loader("train");
  const auto eval = loader("eval");
  epoch(train, 5, [&](int) { epoch(eval, 3, [](int) {}); });
  EXPECT_EQ(sink(*train).steps.load(), 5U);
  EXPECT_EQ(sink(*eval).steps.load(), 15U);
  EXPECT_EQ(sink(*eval).epochs.load(), 5U);
  LoopRecorder one(train), two(eval);
  for (int i = 0; i < 10; ++i) {
    for (LoopRecorder* loop : {&one, &two}) {
      loop->begin_wait();
      loop->end_wait(true, false);
    }
  }
  one.end_loop();
  EXPECT_FALSE(session_->clock()->read(0).paused) << "the other one goes on";
  two.end_loop();
  EXPECT_TRUE(session_->clock()->read(0).paused);
  EXPECT_EQ(sink(*train).steps.load(), 15U);
  EXPECT_EQ(sink(*eval).steps.load(), 25U);
}

TEST_F(Loops, SurviveRecordingThatIsSwitchedElsewhere) {
  const auto train = loader("train");
  LoopRecorder loop(train);
  loop.begin_wait();
  const auto other = Session::open({});
  CurrentSession::push(other);
  OperatorHandle op("inside", "map", 1);
  call(op);  // this thread now records into the other run
  loop.end_wait(true, false);
  loop.begin_wait();
  CurrentSession::pop(*other);
  loop.end_wait(true, false);
  loop.end_loop();
  EXPECT_EQ(sink(*train).steps.load(), 2U);
  other->close();
}

TEST_F(Loops, MoveBetweenThreads) {
  const auto train = loader("train");
  auto loop = std::make_unique<LoopRecorder>(train);
  for (int i = 0; i < 5; ++i) {
    std::thread([&] {
      loop->begin_wait();
      loop->end_wait(true, false);
    }).join();
  }
  std::thread([&] { loop.reset(); }).join();  // dropped by a thread that never iterated
  EXPECT_EQ(sink(*train).steps.load(), 5U);
  EXPECT_EQ(sink(*train).active.load(), 0U);
}

TEST_F(Loops, OperatorsInsideKnowWhereTheyRun) {
  const auto train = loader("train");
  OperatorHandle inside("inside", "map", 1);
  OperatorHandle step("step", "map", 2);
  LoopRecorder loop(train);
  for (int i = 0; i < 3; ++i) {
    loop.begin_wait();
    call(inside);
    loop.end_wait(true, false);
    call(step);
  }
  loop.end_loop();
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  for (std::uint32_t i = 0; i < kMaxCells; ++i) {
    const metrics::OperatorCell& cell = session_->segment().cells()[i];
    if (cell.owner.load() != 0) places.emplace(cell.operator_id.load(), cell.place.load());
  }
  const auto in = static_cast<std::uint32_t>(inside.id_in(*session_));
  const auto outside = static_cast<std::uint32_t>(step.id_in(*session_));
  EXPECT_EQ(places, (std::set<std::pair<std::uint32_t, std::uint32_t>>{
                        {in, static_cast<std::uint32_t>(metrics::Place::get_next)},
                        {outside, static_cast<std::uint32_t>(metrics::Place::step)}}));
}

TEST_F(Loops, TellWhatWasCopiedToADevice) {
  const auto train = loader("train");
  OperatorHandle transfer("to_device", "transfer", 1, kOfTheLoop);
  OperatorHandle other("to_nowhere", "transfer", 2, kOfTheLoop);
  const auto copy = [&](int) {
    call(other);
    call(transfer);
    transfer.transferred({.copies = 1, .bytes = 1000, .pinned_bytes = 250, .pageable_bytes = 750});
    transfer.transferred({.timed_bytes = 500, .copy_ns = 1'000'000, .buffer_wait_ns = 2'000'000});
  };
  epoch(train, 10, copy);
  epoch(train, 4, copy);
  SegmentImage now;
  now.read_memory(session_->segment().data(), session_->segment().size());
  // The first batch of an epoch belongs to the steady loop once it is delivered.
  const Profile whole = read_profile(now, 0);
  const OperatorProfile* op = find(whole, "to_device");
  ASSERT_NE(op, nullptr);
  ASSERT_TRUE(op->transfer.has_value());
  EXPECT_EQ(op->transfer->copies, 14U);
  EXPECT_EQ(op->transfer->bytes, 14'000U);
  EXPECT_DOUBLE_EQ(*op->transfer->bytes_per_s, 500 / 1e-3);
  EXPECT_DOUBLE_EQ(*op->transfer->pinned_share, 0.25);
  EXPECT_DOUBLE_EQ(op->transfer->copy_s, 14e-3);
  EXPECT_DOUBLE_EQ(op->transfer->buffer_wait_s, 28e-3);
  const Profile last = read_profile(now, 0, train->epoch_starts().back().image.get());
  ASSERT_NE(find(last, "to_device"), nullptr);
  EXPECT_EQ(find(last, "to_device")->transfer->copies, 4U);
  EXPECT_DOUBLE_EQ(find(last, "to_device")->transfer->copy_s, 4e-3);
  ASSERT_NE(find(whole, "to_nowhere"), nullptr);
  EXPECT_FALSE(find(whole, "to_nowhere")->transfer.has_value()) << "it told nothing";
}

TEST_F(Loops, WhereNothingIsPinnedOrTimedTheFigureIsEmpty) {
  const auto train = loader("train");
  OperatorHandle transfer("to_device", "transfer", 1, kOfTheLoop);
  epoch(train, 3, [&](int) {
    call(transfer);
    transfer.transferred({.copies = 1, .bytes = 10});
  });
  SegmentImage now;
  now.read_memory(session_->segment().data(), session_->segment().size());
  const Profile profile = read_profile(now, 0);
  ASSERT_NE(find(profile, "to_device"), nullptr);
  EXPECT_FALSE(find(profile, "to_device")->transfer->pinned_share);
  EXPECT_FALSE(find(profile, "to_device")->transfer->bytes_per_s);
}

// --- forks ---

TEST_F(Loops, AForkedWorkerIsAWorkerOfItsOwn) {
  const auto train = loader("train");
  OperatorHandle decode("decode", "map", 1);
  LoopRecorder loop(train);
  ASSERT_TRUE(decode.begin());  // open at the moment of the fork
  const pid_t child = in_child([&] {
    decode.end(false);  // the parent's call: not the child's to end
    for (int i = 0; i < 10; ++i) call(decode);
    loop.begin_wait();
    loop.end_wait(true, false);
    loop.end_loop();
  });
  expect_success(child);
  decode.end(false);
  int mine = 0, childs = 0;
  for (std::uint32_t i = 0; i < kMaxCells; ++i) {
    const metrics::OperatorCell& cell = session_->segment().cells()[i];
    if (cell.owner.load() == 0) continue;
    const metrics::WorkerCell& worker = session_->segment().workers()[cell.owner.load() - 1];
    (worker.pid.load() == getpid() ? mine : childs) += static_cast<int>(cell.items.load());
    if (worker.pid.load() == child) {
      EXPECT_EQ(cell.place.load(), static_cast<std::uint32_t>(metrics::Place::worker))
          << "not the parent's step";
    }
  }
  EXPECT_EQ(mine, 1);
  EXPECT_EQ(childs, 10);
  EXPECT_EQ(sink(*train).steps.load(), 0U) << "the loop is the parent's";
  EXPECT_EQ(sink(*train).active.load(), 1U);
  loop.end_loop();
}

TEST_F(Probes, AKilledWorkerLosesNothing) {
  OperatorHandle decode("decode", "map", 1);
  call(decode);
  const pid_t child = in_child([&] {
    for (int i = 0; i < 123; ++i) call(decode);
    decode.begin();
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(wait_for(child)));
  EXPECT_EQ(items_of("decode"), 124U);
}

}  // namespace
}  // namespace headrace::profile
