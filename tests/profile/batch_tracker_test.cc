#include "headrace/profile/batch_tracker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "headrace/profile/current.h"
#include "headrace/profile/delivery_writer.h"
#include "headrace/profile/iterator_watch.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/snapshot.h"
#include "headrace/profile/stages.h"

namespace headrace::profile {
namespace {

constexpr const char* kTorchModel =
    R"({"framework":"torch","stages":[{"name":"sampler"},{"name":"workers","workers":2,"runs_in":"process"},)"
    R"({"name":"handoff"},{"name":"pin_memory","runs_in":"thread"}],)"
    R"("buffers":[{"from":1,"capacity":2,"is_window":true,"per_worker":true,"set_by":"prefetch_factor"}],)"
    R"("delivery":{"draws":0,"hands_over":2,"pins":3}})";

using metrics::Clock;
using metrics::WaitCharges;
using What = metrics::WaitCharges::What;

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// A queue as a loader's processes have between them.
template <class T>
class Pipe {
 public:
  void put(T value) {
    const std::scoped_lock lock(mutex_);
    items_.push_back(value);
    changed_.notify_all();
  }
  T get() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    const T value = items_.front();
    items_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
};

/// A loader whose worker "processes" are threads: the segment does not know the difference.
class Loader {
 public:
  explicit Loader(int workers, int window, bool in_order = true, bool pins = false, int work_ms = 0)
      : session_(Session::open({"", 0})), workers_(workers) {
    CurrentSession::set(session_);
    handle_ = std::make_shared<LoaderHandle>(session_, "loader", nullptr);
    handle_->describe(kTorchModel, static_cast<std::uint32_t>(workers));
    watch_ = std::make_unique<IteratorWatch>(handle_);
    const std::uint32_t pass = BatchTracker::next_pass();
    watch_->follow({workers, window, in_order, pins, pass});
    indices_ = std::vector<Pipe<std::int64_t>>(static_cast<std::size_t>(workers));
    for (int i = 0; i < workers; ++i) {
      threads_.emplace_back([this, i, pass, work_ms] { work(i, pass, work_ms); });
    }
  }
  ~Loader() {
    for (auto& pipe : indices_) pipe.put(-1);
    for (std::thread& thread : threads_) thread.join();
    watch_.reset();
    handle_.reset();
    CurrentSession::set(nullptr);
  }

  BatchTracker& tracker() { return *watch_->tracker(); }
  IteratorWatch& watch() { return *watch_; }

  void dispatch() {
    const std::int64_t batch = next_++;
    const int worker = static_cast<int>(batch % workers_);
    tracker().dispatched(worker, batch, Clock::now_ns());
    indices_[static_cast<std::size_t>(worker)].put(batch);
  }

  /// Takes the next finished batch off the results, as the thread that receives does.
  std::int64_t receive() {
    ThreadContext* context = ThreadContext::recording();
    const std::int64_t asked = Clock::now_ns();
    context->probe.block(metrics::WorkerState::blocked_in, asked);
    const std::int64_t batch = results_.get();
    tracker().received(batch, asked, Clock::now_ns(), 0);
    return batch;
  }

  Profile profile() {
    SegmentImage image;
    image.read_memory(session_->segment().data(), session_->segment().size());
    return read_profile(image, static_cast<std::uint32_t>(handle_->id()));
  }
  int operator_named(const std::string& name) {
    for (std::uint32_t i = 0; i < kMaxOperators; ++i) {
      if (session_->segment().operators()[i].name.view() == name) return static_cast<int>(i);
    }
    return -1;
  }

  Pipe<int> may_work;  ///< one token per batch where `work_ms` is below 0

 private:
  void work(int number, std::uint32_t pass, int work_ms) {
    const auto writer = DeliveryWriter::enter({handle_->id(), pass, number, workers_});
    OperatorHandle read("Numbers", "source", 0, 0, "num_workers", handle_->id(), kStageDataset);
    OperatorHandle collate("collate", "batch", 0, 0, "num_workers", handle_->id(), kStageCollate);
    for (;;) {
      writer->waiting();
      const std::int64_t batch = indices_[static_cast<std::size_t>(number)].get();
      if (batch < 0) break;
      writer->took(batch);
      read.begin(batch);
      if (work_ms < 0) may_work.get();
      if (work_ms > 0) pause_ms(work_ms);
      read.end(false);
      collate.begin();
      collate.end(false);
      writer->made(batch, 1);
      writer->sending(100);
      writer->sent();
      results_.put(batch);
    }
    writer->finish();
  }

  std::shared_ptr<Session> session_;
  int workers_;
  std::shared_ptr<LoaderHandle> handle_;
  std::unique_ptr<IteratorWatch> watch_;
  std::int64_t next_ = 0;
  std::vector<Pipe<std::int64_t>> indices_;
  Pipe<std::int64_t> results_;
  std::vector<std::thread> threads_;
};

const QueueProfile& queue_named(const Profile& profile, const std::string& name) {
  for (const QueueProfile& queue : profile.queues) {
    if (queue.name == name) return queue;
  }
  ADD_FAILURE() << "no queue " << name;
  static const QueueProfile kNone;
  return kNone;
}

std::int64_t charged(const WaitCharges& charges, What what, int op = -2) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < charges.count; ++i) {
    if (charges.charges[i].what == what && (op == -2 || charges.charges[i].op == op))
      sum += charges.charges[i].ns;
  }
  return sum;
}

TEST(BatchTracker, CountsEveryBatchThroughEveryQueue) {
  Loader loader(2, 4);
  for (int i = 0; i < 4; ++i) loader.dispatch();
  std::vector<bool> arrived(40, false);
  for (std::int64_t batch = 0; batch < 40; ++batch) {
    loader.watch().begin_wait();
    while (!arrived[static_cast<std::size_t>(batch)])
      arrived[static_cast<std::size_t>(loader.receive())] = true;
    if (batch < 36) loader.dispatch();
    loader.watch().end_wait(true, false, batch);
  }
  const Profile profile = loader.profile();
  EXPECT_EQ(profile.sink.steps, 40U);
  EXPECT_EQ(queue_named(profile, "index[0]").puts, 20U);
  EXPECT_EQ(queue_named(profile, "index[1]").gets, 20U);
  for (const char* name : {"results", "reorder"}) {
    EXPECT_EQ(queue_named(profile, name).puts, 40U) << name;
    EXPECT_EQ(queue_named(profile, name).gets, 40U) << name;
  }
  ASSERT_EQ(profile.operators.size(), 3U);
  EXPECT_EQ(profile.operators[0].name, "Numbers");
  EXPECT_EQ(profile.operators[0].items, 40U);
  EXPECT_EQ(profile.operators[0].workers, 2);
  EXPECT_DOUBLE_EQ(profile.operators[0].items_per_batch, 1);
  EXPECT_EQ(profile.operators[1].name, "collate");
  EXPECT_EQ(profile.operators[2].name, "handoff");
  EXPECT_EQ(profile.operators[2].items, 40U);
  ASSERT_TRUE(profile.handoff);
  EXPECT_DOUBLE_EQ(profile.handoff->message_bytes, 100);
  EXPECT_DOUBLE_EQ(profile.handoff->tensors, 1);
  double wait_s = 0;
  for (const LedgerRow& row : profile.stall_ledger) wait_s += row.seconds;
  EXPECT_NEAR(wait_s, profile.sink.wait_share * profile.elapsed_s, 1e-6);
}

TEST(BatchTracker, ABatchThatIsMadeIsReady) {
  Loader loader(1, 2);
  loader.dispatch();
  loader.receive();
  const std::int64_t asked = Clock::now_ns();
  const WaitCharges charges = loader.tracker().yielded(0, asked, Clock::now_ns());
  EXPECT_TRUE(charges.ready);
}

TEST(BatchTracker, ChargesTheServiceThatTheLoopWaitsFor) {
  Loader loader(1, 2, true, false, 20);
  const std::int64_t asked = Clock::now_ns();
  loader.dispatch();
  loader.receive();
  const std::int64_t now = Clock::now_ns();
  const WaitCharges charges = loader.tracker().yielded(0, asked, now);
  EXPECT_FALSE(charges.ready);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < charges.count; ++i) sum += charges.charges[i].ns;
  EXPECT_LE(sum, now - asked);
  EXPECT_GE(charged(charges, What::in_service), 19'000'000);
  EXPECT_EQ(charged(charges, What::order), 0);
}

TEST(BatchTracker, ChargesTheOrderWhereAYoungerBatchIsThere) {
  Loader loader(2, 4, true, false, -1);
  loader.dispatch();
  loader.dispatch();
  const std::int64_t asked = Clock::now_ns();
  // One of the two is made; which one, the threads decide.
  loader.may_work.put(1);
  const std::int64_t first = loader.receive();
  pause_ms(10);
  loader.may_work.put(1);
  loader.receive();
  const WaitCharges charges = loader.tracker().yielded(0, asked, Clock::now_ns());
  if (first == 1) {
    EXPECT_GE(charged(charges, What::order), 9'000'000);
  } else {
    EXPECT_EQ(charged(charges, What::order), 0);
  }
}

TEST(BatchTracker, ChargesTheWorkerThatIsStillBusyWithAnEarlierBatch) {
  Loader loader(1, 2, true, false, 15);
  loader.dispatch();
  loader.dispatch();
  loader.receive();
  loader.tracker().yielded(0, Clock::now_ns(), Clock::now_ns());
  loader.dispatch();  // number 2 waits behind number 1
  const std::int64_t asked = Clock::now_ns();
  loader.receive();
  loader.tracker().yielded(1, asked, Clock::now_ns());
  loader.receive();
  const WaitCharges charges = loader.tracker().yielded(2, asked, Clock::now_ns());
  EXPECT_GT(charged(charges, What::waiting_for_worker, loader.operator_named("Numbers")), 5'000'000);
  EXPECT_GT(charged(charges, What::in_service), 14'000'000);
}

TEST(BatchTracker, WhatIsNeverAskedForIsUnused) {
  Loader loader(2, 4);
  for (int i = 0; i < 4; ++i) loader.dispatch();
  for (int i = 0; i < 4; ++i) loader.receive();
  loader.tracker().yielded(0, Clock::now_ns(), Clock::now_ns());
  loader.tracker().restart(Clock::now_ns());
  loader.tracker().ended(Clock::now_ns());
  loader.tracker().ended(Clock::now_ns());
  const Profile profile = loader.profile();
  ASSERT_TRUE(profile.handoff);
  EXPECT_EQ(profile.handoff->unused_batches, 3U);
}

TEST(BatchTracker, NumbersThatItNeverGaveOutAreIgnored) {
  Loader loader(1, 2);
  loader.tracker().dispatched(7, 0, Clock::now_ns());
  loader.tracker().dispatched(0, -5, Clock::now_ns());
  loader.tracker().received(99, Clock::now_ns(), Clock::now_ns(), 0);
  loader.tracker().pinned(99, Clock::now_ns());
  loader.tracker().unqueued(99, Clock::now_ns());
  EXPECT_FALSE(loader.tracker().yielded(99, Clock::now_ns(), Clock::now_ns()).ready);
  EXPECT_EQ(loader.profile().sink.steps, 0U);
}

// Under ThreadSanitizer: workers, a thread that receives and pins, and the training loop at once.
TEST(BatchTracker, SurvivesWorkersAPinningThreadAndTheLoop) {
  constexpr std::int64_t kBatches = 600;
  Loader loader(4, 8, true, true);
  Pipe<std::int64_t> pinned;
  std::thread pins([&] {
    for (std::int64_t i = 0; i < kBatches; ++i) {
      const std::int64_t batch = loader.receive();
      loader.tracker().pinned(batch, Clock::now_ns());
      pinned.put(batch);
    }
  });
  for (int i = 0; i < 8; ++i) loader.dispatch();
  std::vector<bool> arrived(kBatches, false);
  for (std::int64_t batch = 0; batch < kBatches; ++batch) {
    loader.watch().begin_wait();
    while (!arrived[static_cast<std::size_t>(batch)]) {
      const std::int64_t came = pinned.get();
      loader.tracker().unqueued(came, Clock::now_ns());
      arrived[static_cast<std::size_t>(came)] = true;
    }
    if (batch < kBatches - 8) loader.dispatch();
    loader.watch().end_wait(true, false, batch);
  }
  pins.join();
  const Profile profile = loader.profile();
  EXPECT_EQ(profile.sink.steps, static_cast<std::uint64_t>(kBatches));
  EXPECT_EQ(queue_named(profile, "pinned").gets, static_cast<std::uint64_t>(kBatches));
  for (const QueueProfile& queue : profile.queues) {
    double whole = 0;
    for (const double share : queue.occupancy) whole += share;
    EXPECT_NEAR(whole, 1, 1e-9) << queue.name;
  }
}

/// Workers that could not join the run (spawned, where there is no file to attach to): levels follow what the
/// training process sees.
TEST(BatchTracker, LevelsStayWithinTheWindowWhereWorkersAreNotRecorded) {
  const auto session = Session::open({"", 0});
  CurrentSession::set(session);
  const auto handle = std::make_shared<LoaderHandle>(session, "loader", nullptr);
  handle->describe(kTorchModel, 2);
  {
    IteratorWatch watch(handle);
    constexpr int kWindow = 4;
    watch.follow({2, kWindow, true, false, BatchTracker::next_pass()});
    ThreadContext* context = ThreadContext::recording();
    std::int64_t given_out = 0;
    for (; given_out < kWindow; ++given_out)
      watch.tracker()->dispatched(static_cast<int>(given_out % 2), given_out, Clock::now_ns());
    for (std::int64_t batch = 0; batch < 40; ++batch) {
      const std::int64_t asked = Clock::now_ns();
      context->probe.block(metrics::WorkerState::blocked_in, asked);
      watch.tracker()->received(batch, asked, Clock::now_ns(), 0);
      watch.tracker()->dispatched(static_cast<int>(given_out % 2), given_out, Clock::now_ns());
      ++given_out;
      watch.tracker()->yielded(batch, asked, Clock::now_ns());
      for (std::uint32_t i = 0; i < kMaxQueues; ++i) {
        const metrics::QueueCell& cell = session->segment().queues()[i].cell;
        ASSERT_LE(cell.occupancy.level.load(), cell.capacity.load())
            << "queue " << i << " at batch " << batch;
      }
    }
  }
  CurrentSession::set(nullptr);
}

}  // namespace
}  // namespace headrace::profile
