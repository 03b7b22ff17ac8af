#include "headrace/profile/history.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "headrace/profile/annotation.h"
#include "headrace/profile/current.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/registry.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

using std::chrono::milliseconds;

History history_of(const Session& session) {
  SegmentImage image;
  image.include_history();
  auto& segment = const_cast<Session&>(session).segment();
  image.read_memory(segment.data(), segment.size());
  return read_history(image);
}

const HistoryOperator& operator_of(const History& history, const StateSlice& slice) {
  return history.operators.at(static_cast<std::size_t>(slice.op));
}

/// Slices of an operator, whatever worker they are of.
std::vector<StateSlice> slices_of(const History& history, const std::string& name) {
  std::vector<StateSlice> found;
  for (const WorkerStates& worker : history.workers) {
    for (const StateSlice& slice : worker.slices) {
      if (slice.op >= 0 && operator_of(history, slice).name == name) found.push_back(slice);
    }
  }
  return found;
}

void expect_ordered(const History& history) {
  for (const WorkerStates& worker : history.workers) {
    for (std::size_t i = 0; i < worker.slices.size(); ++i) {
      EXPECT_LT(worker.slices[i].begin_ns, worker.slices[i].end_ns);
      if (i == 0) continue;
      EXPECT_GE(worker.slices[i].begin_ns, worker.slices[i - 1].end_ns);
    }
  }
}

TEST(History, TellsWhatWorkersQueuesAndLoopsDid) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  CurrentSession::set(session);
  QueueHandle queue("decoded", 4);
  OperatorHandle decode("decode", "map", 0);
  std::thread worker([&] {
    for (int i = 1; i <= 3; ++i) {
      decode.begin();
      std::this_thread::sleep_for(milliseconds(3));
      decode.end(false);
      queue.put(i, 0, true, "feed");
    }
  });
  worker.join();
  auto loader = std::make_shared<LoaderHandle>(session, "train", nullptr);
  {
    LoopRecorder loop(loader);
    for (int batch = 0; batch < 3; ++batch) {
      loop.begin_wait();
      queue.waiting(metrics::WorkerState::blocked_in);
      std::this_thread::sleep_for(milliseconds(2));
      queue.waited();
      queue.get(2 - batch, 2'000'000, true, nullptr);
      loop.end_wait(true, false);
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  const History history = history_of(*session);
  expect_ordered(history);
  ASSERT_EQ(slices_of(history, "decode").size(), 3U);
  for (const StateSlice& slice : slices_of(history, "decode")) {
    EXPECT_FALSE(slice.mixed());
    EXPECT_GE(slice.end_ns - slice.begin_ns, 2'900'000);
    EXPECT_GE(slice.begin_ns, history.opened_ns - 256);
    EXPECT_LE(slice.end_ns, history.until_ns);
  }
  ASSERT_EQ(history.queues.size(), 1U);
  EXPECT_EQ(history.queues[0].name, "decoded");
  double most = 0;
  for (const LevelSample& sample : history.queues[0].samples) most = std::max(most, sample.level);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(history.queues[0].samples.back().level, 0);

  const LoopHistory& loop = history.loops.at(static_cast<std::size_t>(loader->id()));
  EXPECT_EQ(loop.loader, "train");
  ASSERT_EQ(loop.calls.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(loop.calls[i].batch, i);
    EXPECT_FALSE(loop.calls[i].merged);
    EXPECT_GE(loop.calls[i].end_ns - loop.calls[i].begin_ns, 1'900'000);
  }
  EXPECT_EQ(loop.ends_ns.size(), 1U);
  CurrentSession::set(nullptr);
}

TEST(History, KeepsNamedRangesOfThreads) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  CurrentSession::set(session);
  for (int i = 0; i < 3; ++i) {
    const Annotation outer("augment");
    std::this_thread::sleep_for(milliseconds(1));
    const Annotation inner("crop");
    std::this_thread::sleep_for(milliseconds(1));
  }
  const History history = history_of(*session);
  ASSERT_EQ(history.annotations.size(), 1U);
  const ThreadAnnotations& thread = history.annotations[0];
  EXPECT_EQ(thread.pid, getpid());
  ASSERT_EQ(thread.ranges.size(), 6U);
  for (std::size_t i = 0; i < 6; i += 2) {
    EXPECT_EQ(thread.ranges[i].name, "augment");
    EXPECT_EQ(thread.ranges[i].number, i / 2);
    EXPECT_EQ(thread.ranges[i + 1].name, "crop");
    EXPECT_LE(thread.ranges[i].begin_ns, thread.ranges[i + 1].begin_ns);
    EXPECT_GE(thread.ranges[i].end_ns, thread.ranges[i + 1].end_ns);
  }
  CurrentSession::set(nullptr);
}

TEST(History, AnnotationsWithoutASessionCostNothingAndHarmNothing) {
  CurrentSession::set(nullptr);
  const Annotation nobody("nobody listens");
  SUCCEED();
}

/// A worker process is killed in the middle of an item: what it did is there, and it is busy until its death.
TEST(History, SurvivesAKilledWorker) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  CurrentSession::set(session);
  OperatorHandle decode("decode", "map", 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    decode.begin();
    std::this_thread::sleep_for(milliseconds(3));
    decode.end(false);
    decode.begin();
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  session->keep_alive();
  const History history = history_of(*session);
  expect_ordered(history);
  const auto slices = slices_of(history, "decode");
  ASSERT_FALSE(slices.empty());
  EXPECT_GE(slices[0].end_ns - slices[0].begin_ns, 2'900'000);
  for (const WorkerStates& worker : history.workers) {
    if (worker.pid != child) continue;
    EXPECT_LE(worker.slices.back().end_ns, history.until_ns);
  }
  close(ready[0]);
  close(ready[1]);
  CurrentSession::set(nullptr);
}

TEST(History, IsInTheCopyThatARunLeaves) {
  const ScratchFolder folder;
  const std::string run = folder / "run";
  auto session = Session::open({run, 0});
  CurrentSession::set(session);
  OperatorHandle decode("decode", "map", 0);
  decode.begin();
  std::this_thread::sleep_for(milliseconds(3));
  decode.end(false);
  const std::size_t before = slices_of(history_of(*session), "decode").size();
  session->close();
  CurrentSession::set(nullptr);
  SegmentImage image;
  image.include_history();
  image.read_file(run + "/rank0.hrseg");
  EXPECT_EQ(slices_of(read_history(image), "decode").size(), before);
  EXPECT_GT(before, 0U);
  // Whoever does not ask for it does not read it.
  SegmentImage without;
  without.read_file(run + "/rank0.hrseg");
  EXPECT_TRUE(read_history(without).workers.empty());
}

TEST(History, IsReadWhileThreadsRecord) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  CurrentSession::set(session);
  std::atomic<bool> stop{false};
  OperatorHandle decode("decode", "map", 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        const Annotation annotation("item");
        decode.begin();
        std::this_thread::yield();
        decode.end(false);
      }
    });
  }
  for (int i = 0; i < 50; ++i) expect_ordered(history_of(*session));
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(slices_of(history_of(*session), "decode").empty());
  CurrentSession::set(nullptr);
}

}  // namespace
}  // namespace headrace::profile
