#include "headrace/profile/session.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "headrace/metrics/operator_probe.h"
#include "headrace/profile/current.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/orphans.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/segment_image.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;
using metrics::Clock;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Session, LeavesOneFileWhenClosed) {
  const ScratchFolder folder;
  std::string live;
  {
    const auto session = Session::open({folder / "run", 0});
    live = session->live_path();
    EXPECT_TRUE(session->owner());
    EXPECT_EQ(session->run(), folder / "run");
    EXPECT_TRUE(session->take_messages().empty());
    EXPECT_TRUE(fs::exists(live));
    session->operator_id({.name = "decode"});
    session->close();
    session->close();
  }
  EXPECT_FALSE(fs::exists(live));
  EXPECT_EQ(files_in(folder / "run"), std::vector<std::string>{"rank0.hrseg"});
  SegmentImage image;
  image.read_file(folder / "run/rank0.hrseg");
  EXPECT_EQ(image.header().closed.load(), 1U);
  EXPECT_EQ(image.operators()[0].name.view(), "decode");
}

TEST(Session, ClosesItselfWhenNobodyHoldsIt) {
  const ScratchFolder folder;
  Session::open({folder.path(), 3});
  EXPECT_EQ(files_in(folder.path()), std::vector<std::string>{"rank3.hrseg"});
}

TEST(Session, RecordsSeveralRunsOfOneRankSideBySide) {
  const ScratchFolder folder;
  for (int i = 0; i < 3; ++i) Session::open({folder.path(), 0});
  EXPECT_EQ(files_in(folder.path()),
            (std::vector<std::string>{"rank0.2.hrseg", "rank0.3.hrseg", "rank0.hrseg"}));
}

TEST(Session, GoesOnWithoutAFolder) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "x");
  for (const std::string& run : {folder / "file", folder / "file/below", std::string("/proc/headrace")}) {
    const auto session = Session::open({run, 0});
    EXPECT_EQ(session->take_messages().size(), 1U) << run;
    EXPECT_TRUE(session->take_messages().empty()) << "said once";
    EXPECT_EQ(session->operator_id({.name = "decode"}), 0);
    metrics::WorkerCell* worker = session->claim_worker(Clock::now_ns());
    ASSERT_NE(worker, nullptr);
    EXPECT_NE(session->claim_cell(*worker, 0, metrics::Place::worker, false), nullptr);
    const std::string live = session->live_path();
    session->copy_out();
    session->close();
    EXPECT_FALSE(!live.empty() && fs::exists(live)) << "a run that has no folder leaves nothing behind";
  }
}

TEST(Session, KeepsTheLiveSegmentWhereTheLastCopyFails) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  session->operator_id({.name = "decode"});
  fs::remove_all(folder / "run");
  session->close();
  EXPECT_TRUE(fs::exists(session->live_path())) << "it is all there is of this run";
  const auto messages = session->take_messages();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find(session->live_path()), std::string::npos) << messages[0];
  // The run folder is gone for good, so the next session takes the segment away.
  session->segment().header().closed.store(1);
  collect_orphans("");
  EXPECT_TRUE(fs::exists(session->live_path())) << "its process still runs";
  fs::remove(session->live_path());
  write_home(session->live_path(), "");
}

TEST(Session, AnUnnamedRunGoesWhenAllOfItWasReported) {
  const ScratchFolder folder;
  const std::string run = folder / "headrace-runs/20260101-120000-17";
  {
    const auto session = Session::open({run, 0, true});
    const int loader = session->loader_id("train", -1);
    session->sink(loader)->steps.store(5);
    EXPECT_EQ(read_bytes(folder / "headrace-runs/.gitignore"), "*\n");
    session->note_report(loader);
    session->close();
    EXPECT_TRUE(session->take_messages().empty());
    EXPECT_FALSE(fs::exists(folder / "headrace-runs"));
  }
  const auto session = Session::open({run, 0, true});
  const int loader = session->loader_id("train", -1);
  session->note_report(loader);
  session->sink(loader)->steps.store(5);
  session->close();
  EXPECT_TRUE(fs::exists(run + "/rank0.hrseg")) << "nobody has seen the last steps";
  const auto messages = session->take_messages();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find(run), std::string::npos);
}

/// A disk that was full for a while: what counts is the last copy.
TEST(Session, RecoversFromACopyThatFailed) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  fs::remove_all(folder / "run");
  session->copy_out();
  fs::create_directory(folder / "run");
  session->close();
  EXPECT_FALSE(fs::exists(session->live_path()));
  EXPECT_EQ(files_in(folder / "run"), std::vector<std::string>{"rank0.hrseg"});
}

TEST(Session, TakesItsFolderLater) {
  const ScratchFolder folder;
  const auto session = Session::open({"", 1});
  EXPECT_FALSE(session->has_run());
  session->copy_out();
  session->bind_run(folder / "run");
  EXPECT_TRUE(session->has_run());
  session->bind_run(folder / "other");
  EXPECT_EQ(session->run(), folder / "run") << "once and for all";
  EXPECT_EQ(find_segments(folder / "run").size(), 1U);
  session->close();
  EXPECT_EQ(files_in(folder / "run"), std::vector<std::string>{"rank1.hrseg"});
}

TEST(Session, CopyIsTheStateOfThatMoment) {
  const ScratchFolder folder;
  const auto session = Session::open({folder.path(), 0});
  session->operator_id({.name = "first"});
  session->copy_out();
  session->operator_id({.name = "second"});
  SegmentImage image;
  image.read_file(folder / "rank0.hrseg");
  EXPECT_EQ(image.operators()[0].name.view(), "first");
  EXPECT_EQ(image.operators()[1].name.view(), "");
}

TEST(Session, LoopsMoveTheClock) {
  const auto session = Session::open({});
  EXPECT_FALSE(session->loop_running());
  const std::int64_t now = Clock::now_ns();
  session->loop_began(now);
  session->loop_began(now + 100);
  EXPECT_TRUE(session->loop_running());
  session->loop_ended(now + 200);
  EXPECT_FALSE(session->clock()->read(now + 300).paused) << "the other loop goes on";
  session->loop_ended(now + 400);
  EXPECT_EQ(session->clock()->read(now + 900).loop_ns, 400);
}

// --- who is in service ---

/// A worker as its own cells describe it, without a thread behind it.
struct FakeWorker {
  FakeWorker(Session& session, int op, std::vector<std::pair<int, bool>> edges) {
    cell = session.claim_worker(Clock::now_ns());
    probe.bind(cell, session.segment().cells(), session.clock(), Clock::now_ns());
    for (const auto& [queue, is_put] : edges) probe.edge(static_cast<std::uint32_t>(queue), is_put, true);
    if (op >= 0) body = session.claim_cell(*cell, op, metrics::Place::worker, false);
  }
  void begin() { probe.enter(*body, Clock::now_ns()); }
  void end() { probe.leave(Clock::now_ns(), false); }

  metrics::WorkerCell* cell;
  metrics::OperatorCell* body = nullptr;
  metrics::WorkerProbe probe;
};

TEST(Session, FindsTheNearestBusyWorkerUpstream) {
  const auto session = Session::open({});
  const int read = session->operator_id({.name = "read"});
  const int decode = session->operator_id({.name = "decode"});
  const int other = session->operator_id({.name = "other"});
  for (const char* queue : {"paths", "images", "elsewhere"}) session->queue_id(queue, 4);
  FakeWorker sink(*session, -1, {{1, false}});
  sink.cell->is_sink.store(1);
  FakeWorker reader(*session, read, {{0, true}});
  FakeWorker decoder(*session, decode, {{0, false}, {1, true}});
  FakeWorker stranger(*session, other, {{2, true}});
  EXPECT_EQ(session->in_service(-1), metrics::SinkSurroundings::kNobody);
  stranger.begin();
  EXPECT_EQ(session->in_service(-1), metrics::SinkSurroundings::kNobody) << "feeds somebody else";
  reader.begin();
  EXPECT_EQ(session->in_service(-1), read) << "the decoder waits for it";
  metrics::Relaxed<std::int64_t>& paths = session->segment().queues()[0].cell.occupancy.level;
  paths.store(3);
  decoder.begin();
  EXPECT_EQ(session->in_service(-1), decode);
  paths.store(0);
  EXPECT_EQ(session->in_service(-1), read)
      << "the decoder has its last item: the next one is the reader's to make";
  paths.store(3);
  EXPECT_EQ(session->busy_workers(), 3);
  EXPECT_EQ(session->busy_threads_here(), 3);
  decoder.end();
  EXPECT_EQ(session->in_service(-1), read);
}

TEST(Session, FindsAnExecutorsThread) {
  const auto session = Session::open({});
  const int task = session->operator_id({.name = "task"});
  FakeWorker sink(*session, -1, {});
  sink.cell->is_sink.store(1);
  FakeWorker pool(*session, task, {});
  EXPECT_EQ(session->in_service(-1), metrics::SinkSurroundings::kNobody);
  pool.begin();
  EXPECT_EQ(session->in_service(-1), task);
}

TEST(Session, EndsOnQueuesThatGoRound) {
  const auto session = Session::open({});
  for (const char* queue : {"a", "b"}) session->queue_id(queue, 4);
  FakeWorker sink(*session, -1, {{0, false}});
  sink.cell->is_sink.store(1);
  FakeWorker round(*session, -1, {{1, false}, {0, true}});
  FakeWorker again(*session, -1, {{0, false}, {1, true}});
  EXPECT_EQ(session->in_service(-1), metrics::SinkSurroundings::kNobody);
}

// --- other processes ---

TEST(Session, CountsWhatAnAttachedProcessRecords) {
  const ScratchFolder folder;
  const auto session = Session::open({folder.path(), 4});
  const std::string live = session->live_path();
  expect_success(in_child([&] {
    const auto mine = Session::attach(live);
    EXPECT_FALSE(mine->owner());
    EXPECT_EQ(mine->rank(), 4);
    metrics::WorkerCell* worker = mine->claim_worker(Clock::now_ns());
    metrics::WorkerProbe probe;
    probe.bind(worker, mine->segment().cells(), mine->clock(), Clock::now_ns());
    metrics::OperatorProbe decode(&probe, mine->claim_cell(*worker, mine->operator_id({.name = "decode"}),
                                                           metrics::Place::worker, false));
    for (int i = 0; i < 1000; ++i) const metrics::OperatorProbe::Call call(decode);
    mine->close();  // not the owner: closes nothing
  }));
  EXPECT_TRUE(fs::exists(live));
  EXPECT_EQ(session->segment().header().closed.load(), 0U);
  EXPECT_EQ(session->segment().cells()[0].items.load(), 1000U);
  EXPECT_EQ(session->segment().cells()[0].service.sum_ns.load() >= 0, true);
}

TEST(Session, AttachRefusesAClosedRun) {
  const ScratchFolder folder;
  const auto session = Session::open({folder.path(), 0});
  session->close();
  EXPECT_THROW(Session::attach(session->live_path()), SegmentError);
}

TEST(Session, KeepsWhatAKilledWorkerCounted) {
  const ScratchFolder folder;
  const auto session = Session::open({folder.path(), 0});
  const int decode = session->operator_id({.name = "decode"});
  const pid_t child = in_child([&] {
    const auto mine = Session::attach(session->live_path());
    FakeWorker worker(*mine, decode, {});
    for (int i = 0; i < 77; ++i) {
      worker.begin();
      worker.end();
    }
    worker.begin();
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(wait_for(child)));
  session->keep_alive();
  session->close();
  SegmentImage image;
  image.read_file(folder / "rank0.hrseg");
  EXPECT_EQ(image.cells()[0].items.load(), 77U);
}

TEST(Session, KnowsWhichProcessesLive) {
  const auto session = Session::open({});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = in_child([&] {
    session->claim_worker(1);
    EXPECT_EQ(write(ready[1], "x", 1), 1);
    pause();
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  session->claim_worker(1);
  session->keep_alive();
  metrics::WorkerCell* workers = session->segment().workers();
  EXPECT_GT(workers[0].last_alive_ns.load(), 1);
  EXPECT_GT(workers[1].last_alive_ns.load(), 1);
  kill(child, SIGKILL);
  wait_for(child);
  const std::int64_t seen = workers[0].last_alive_ns.load();
  session->keep_alive();
  EXPECT_EQ(workers[0].last_alive_ns.load(), seen);
  EXPECT_GT(workers[1].last_alive_ns.load(), seen);
  close(ready[0]);
  close(ready[1]);
}

TEST(Session, MakesRoomForTheWorkersOfOtherProcesses) {
  const auto session = Session::open({});
  for (int i = 0; i < 4; ++i) {
    expect_success(in_child([&] {
      for (std::uint32_t worker = 0; worker < kMaxWorkers / 5 * 2; ++worker) {
        EXPECT_NE(session->claim_worker(Clock::now_ns()), nullptr);
      }
    }));
    session->keep_alive();  // as the sampler does
  }
  EXPECT_EQ(session->segment().header().dropped.workers.load(), 0U);
}

/// The child of a fork inherits locks as they are at that moment: none of them may be held by a thread that
/// it lacks.
TEST(Session, ForksAtAnyMoment) {
  const ScratchFolder folder;
  const auto session = CurrentSession::for_run(folder / "run", 0);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop.load()) session->copy_out();
  });
  threads.emplace_back([&] {
    for (int i = 0; !stop.load(); ++i) session->operator_id({.name = "operator " + std::to_string(i % 20)});
  });
  for (int i = 0; i < 40; ++i) {
    const pid_t child = in_child([&] {
      alarm(60);  // a deadlock ends as a failure
      session->operator_id({.name = "in a child"});
      session->loop_began(Clock::now_ns());
      session->loop_ended(Clock::now_ns());
      EXPECT_FALSE(session->owner());
      session->copy_out();
      session->close();
    });
    expect_success(child);
    if (HasFailure()) break;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(session->owner());
  EXPECT_EQ(session->segment().header().closed.load(), 0U);
  session->close();
  CurrentSession::set(nullptr);
}

}  // namespace
}  // namespace headrace::profile
