#include "headrace/metrics/worker_probe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "headrace/metrics/clock.h"
#include "headrace/metrics/operator_probe.h"
#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

constexpr int kCells = 6;

std::uint32_t account_of(WorkerState state) { return static_cast<std::uint32_t>(state); }
std::uint32_t account_of_cell(int cell) { return kOperatorAccount + static_cast<std::uint32_t>(cell); }

/// A worker's cells and a clock that only the test moves.
struct WorkerBench {
  WorkerBench() {
    clock->open(now);
    probe.bind(worker.get(), cells.get(), clock.get(), now);
  }

  std::int64_t total_of(std::uint32_t account) const {
    return account < kOperatorAccount ? worker->state_ns[account].load()
                                      : cells[account - kOperatorAccount].busy_ns.load();
  }
  std::int64_t sum() const {
    std::int64_t total = 0;
    for (const auto& state : worker->state_ns) total += state.load();
    for (int i = 0; i < kCells; ++i) total += cells[static_cast<std::size_t>(i)].busy_ns.load();
    return total;
  }
  std::int64_t loop_ns() const { return clock->read(now).loop_ns; }
  OperatorCell& cell(int index) const { return cells[static_cast<std::size_t>(index)]; }

  std::int64_t now = 1'000'000'000;
  Zeroed<LoopClock> clock;
  Zeroed<WorkerCell> worker;
  Zeroed<OperatorCell> cells{kCells};
  WorkerProbe probe;
};

TEST(WorkerProbe, ChargesNestedTimeOnce) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.probe.enter(bench.cell(0), bench.now);
  bench.probe.enter(bench.cell(1), bench.now += 100);
  bench.probe.block(WorkerState::blocked_in, bench.now += 30);
  bench.probe.unblock(bench.now += 1000);
  EXPECT_EQ(bench.probe.leave(bench.now += 7, false), 37)
      << "its own time: 30 before the wait and 7 after it";
  EXPECT_EQ(bench.probe.leave(bench.now += 5, true), 105);
  EXPECT_EQ(bench.cell(0).busy_ns.load(), 105);
  EXPECT_EQ(bench.cell(1).busy_ns.load(), 37);
  EXPECT_EQ(bench.worker->state_ns[account_of(WorkerState::blocked_in)].load(), 1000);
  EXPECT_EQ(bench.probe.blocked_wall_ns(), 1000);
  EXPECT_EQ(bench.probe.body_wall_ns(), 142);
  EXPECT_EQ(bench.cell(0).failures.load(), 1U);
  EXPECT_EQ(bench.cell(1).failures.load(), 0U);
  EXPECT_EQ(bench.cell(1).items.load(), 1U);
}

/// CPU time of a thread of its own: a library's.
std::int64_t compute_in_a_pool(std::int64_t cpu_ns) {
  std::int64_t used = 0;
  std::thread([&] {
    while (used < cpu_ns) used = Clock::thread_cpu_ns();
  }).join();
  return used;
}

TEST(WorkerProbe, ChargesThePoolsOfAWorkerProcessToTheOperatorThatComputesInThem) {
  constexpr std::int64_t kCpu_ns = 5'000'000;
  WorkerBench bench;
  bench.worker->loader.store(1);
  bench.clock->resume(bench.now);
  bench.probe.enter(bench.cell(0), bench.now);
  bench.probe.enter(bench.cell(1), bench.now += 100);
  const std::int64_t used = compute_in_a_pool(kCpu_ns);
  bench.probe.leave(bench.now += 100, false);
  bench.probe.leave(bench.now += 100, false);
  EXPECT_GE(bench.cell(1).sampled_pool_ns.load(), used);
  EXPECT_LT(bench.cell(1).sampled_pool_ns.load(), 2 * used);
  EXPECT_LT(bench.cell(0).sampled_pool_ns.load(), kCpu_ns) << "it only called the other one";
}

TEST(WorkerProbe, LeavesThePoolsOfTheLoopsProcessAlone) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.probe.enter(bench.cell(0), bench.now);
  compute_in_a_pool(1'000'000);
  bench.probe.leave(bench.now += 100, false);
  EXPECT_EQ(bench.cell(0).sampled_pool_ns.load(), 0);
}

TEST(WorkerProbe, GivesTheTimeAroundWorkDoneElsewhereToTheLoop) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.probe.rest_in(&bench.cell(0), WorkerState::idle, bench.now);
  bench.probe.loop_item(bench.now, false);
  const std::int64_t sent = bench.now += 10;
  bench.probe.enter(bench.cell(1), sent, 7);
  EXPECT_EQ(bench.worker->account.load(), account_of_cell(1)) << "while it lasts it is the body's";
  bench.now += 100;
  bench.probe.withdraw();
  bench.probe.attribute(bench.cell(1), sent + 30, sent + 90, 40, 7);
  bench.probe.loop_item(bench.now += 5, true);
  EXPECT_EQ(bench.cell(1).busy_ns.load(), 60);
  EXPECT_EQ(bench.cell(1).items.load(), 1U);
  EXPECT_EQ(bench.cell(1).sampled_cpu_ns.load(), 40);
  EXPECT_EQ(bench.cell(1).labelled.load(), 1U);
  EXPECT_EQ(bench.cell(0).items.load(), 1U);
  bench.probe.rest_in(nullptr, WorkerState::idle, bench.now);
  EXPECT_EQ(bench.cell(0).busy_ns.load(), 10 + 40 + 5);
  EXPECT_EQ(bench.sum(), bench.loop_ns());
}

TEST(WorkerProbe, KeepsStartUpAndPausesOutOfTheFigures) {
  WorkerBench bench;
  bench.probe.enter(bench.cell(0), bench.now);
  bench.probe.leave(bench.now += 500, false);  // before the loop
  bench.clock->resume(bench.now += 100);
  bench.probe.enter(bench.cell(0), bench.now += 10);
  bench.probe.leave(bench.now += 70, false);
  bench.clock->pause(bench.now);
  bench.probe.enter(bench.cell(0), bench.now += 1000);
  bench.probe.leave(bench.now += 1000, false);
  EXPECT_EQ(bench.cell(0).items.load(), 3U);
  EXPECT_EQ(bench.cell(0).loop_items.load(), 1);
  EXPECT_EQ(bench.cell(0).busy_ns.load(), 70);
  EXPECT_EQ(bench.sum(), 80);
}

TEST(WorkerProbe, CountsWhatIsCopiedWhileTheLoopRuns) {
  WorkerBench bench;
  const auto copy = [&](std::int64_t bytes) {
    bench.probe.enter(bench.cell(0), bench.now);
    bench.probe.transferred(bench.cell(0), {.copies = 1, .bytes = bytes, .pinned_bytes = bytes}, bench.now);
    bench.probe.leave(bench.now += 100, false);
  };
  copy(1000);  // start-up
  bench.clock->resume(bench.now += 100);
  copy(64);
  copy(36);
  // The time of a copy that went on by itself, told later.
  bench.probe.transferred(bench.cell(0), {.timed_bytes = 64, .copy_ns = 8, .buffer_wait_ns = 5}, bench.now);
  const TransferRecord told = bench.cell(0).transfer.read();
  EXPECT_EQ(told.copies, 2);
  EXPECT_EQ(told.bytes, 100);
  EXPECT_EQ(told.pinned_bytes, 100);
  EXPECT_EQ(told.pageable_bytes, 0);
  EXPECT_EQ(told.timed_bytes, 64);
  EXPECT_EQ(told.copy_ns, 8);
  EXPECT_EQ(told.buffer_wait_ns, 5);
  bench.cell(0).restart();
  EXPECT_EQ(bench.cell(0).transfer.read().bytes, 0);
}

TEST(WorkerProbe, CountsTheBodyThatIsOpenWhenTheLoopBeginsFromThere) {
  WorkerBench bench;
  bench.probe.enter(bench.cell(0), bench.now);
  bench.clock->resume(bench.now += 5000);
  bench.probe.leave(bench.now += 300, false);
  EXPECT_EQ(bench.cell(0).busy_ns.load(), 300);
  EXPECT_EQ(bench.sum(), 300);
}

TEST(WorkerProbe, IsIdleBeforeItComes) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.now += 4000;
  WorkerProbe late;
  Zeroed<WorkerCell> cell;
  late.bind(cell.get(), bench.cells.get(), bench.clock.get(), bench.now);
  late.enter(bench.cell(0), bench.now += 100);
  EXPECT_EQ(cell->state_ns[account_of(WorkerState::idle)].load(), 4100);
}

TEST(WorkerProbe, NamesTheLoopBetweenQueueCalls) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.probe.rest_in(&bench.cell(2), WorkerState::idle, bench.now);
  EXPECT_EQ(bench.probe.loop_cell(), &bench.cell(2));
  bench.probe.loop_item(bench.now, true);  // opens the first item
  for (const std::int64_t service : {40, 60}) {
    bench.probe.enter(bench.cell(0), bench.now += service);
    bench.probe.leave(bench.now += 1000, false);
    bench.probe.loop_item(bench.now += 1, true);
  }
  bench.probe.loop_item(bench.now += 9, false);  // an end mark: not an item
  EXPECT_EQ(bench.cell(2).items.load(), 2U);
  EXPECT_EQ(bench.cell(2).service.sum_ns.load(), 102);
  bench.probe.finish(bench.now);
  EXPECT_EQ(bench.cell(2).busy_ns.load(), 40 + 60 + 2 + 9);
}

TEST(WorkerProbe, CountsTheItemsOfALoopThatNeverWaits) {
  WorkerBench bench;
  bench.probe.rest_in(&bench.cell(2), WorkerState::idle, bench.now);
  bench.probe.loop_item(bench.now, true);
  bench.probe.loop_item(bench.now += 50, true);  // before the training loop begins
  bench.clock->resume(bench.now += 30);
  for (int item = 0; item < 8; ++item) bench.probe.loop_item(bench.now += kFirstWindowNs / 2, true);
  EXPECT_EQ(bench.worker->begun.load(), 1U);
  EXPECT_EQ(bench.cell(2).loop_items.load(), 8);
  EXPECT_EQ(bench.cell(2).service.sum_ns.load(), 8 * kFirstWindowNs / 2 + 30);
  EXPECT_GE(bench.worker->grid.closed.load(), 3U);
  EXPECT_EQ(bench.cell(2).windows.get(0, 1), 1)
      << "the second item ends with the first window, and is of the next";
  bench.probe.finish(bench.now);
  EXPECT_EQ(bench.sum(), bench.loop_ns());
}

TEST(WorkerProbe, CountsDeepCallsAndLeavesTheirTimeToTheCaller) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  constexpr int kDepth = WorkerProbe::kMaxDepth + 10;
  for (int i = 0; i < kDepth; ++i) bench.probe.enter(bench.cell(0), bench.now += 10);
  EXPECT_EQ(bench.probe.depth(), WorkerProbe::kMaxDepth);
  for (int i = 0; i < kDepth; ++i) bench.probe.leave(bench.now += 10, false);
  EXPECT_EQ(bench.probe.depth(), 0);
  EXPECT_EQ(bench.cell(0).items.load(), static_cast<std::uint64_t>(kDepth));
  EXPECT_EQ(bench.cell(0).loop_items.load(), kDepth);
  EXPECT_EQ(bench.sum(), bench.loop_ns());
  bench.probe.leave(bench.now += 10, false);  // one too many
  EXPECT_EQ(bench.cell(0).items.load(), static_cast<std::uint64_t>(kDepth));
}

TEST(WorkerProbe, CountsAWaitWithinAWait) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.probe.block(WorkerState::blocked_in, bench.now);
  bench.probe.block(WorkerState::blocked_out, bench.now += 100);
  bench.probe.unblock(bench.now += 20);
  bench.probe.unblock(bench.now += 5);
  EXPECT_EQ(bench.probe.blocked_wall_ns(), 120);
  EXPECT_EQ(bench.worker->state_ns[account_of(WorkerState::blocked_in)].load(), 100);
  EXPECT_EQ(bench.worker->state_ns[account_of(WorkerState::blocked_out)].load(), 20);
}

TEST(WorkerProbe, RemembersEdges) {
  WorkerBench bench;
  bench.probe.edge(5, false, true);
  bench.probe.edge(7, true, true);
  bench.probe.edge(7, true, true);
  bench.probe.edge(9, true, false);  // an end mark makes no edge
  EXPECT_TRUE(bench.probe.gets_from(5));
  EXPECT_FALSE(bench.probe.gets_from(7));
  EXPECT_TRUE(bench.probe.puts_somewhere());
  EXPECT_EQ(bench.worker->edges[1].items.load(), 2U);
  EXPECT_EQ(bench.worker->edges[2].queue.load(), 0U);
  for (std::uint32_t queue = 20; queue < 40; ++queue) bench.probe.edge(queue, true, true);  // more than fit
  EXPECT_EQ(bench.worker->edges[1].items.load(), 2U);
}

TEST(WorkerProbe, DoesNothingOnceFinished) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  bench.probe.enter(bench.cell(0), bench.now);
  bench.probe.finish(bench.now += 50);
  EXPECT_FALSE(bench.probe.bound());
  EXPECT_EQ(bench.cell(0).busy_ns.load(), 50)
      << "the time until the end was spent, the item was not finished";
  EXPECT_EQ(bench.cell(0).items.load(), 0U);
  EXPECT_EQ(bench.worker->life.load(), static_cast<std::uint32_t>(WorkerLife::finished));
  EXPECT_EQ(bench.worker->ended_ns.load(), bench.now);
  bench.probe.rest_in(nullptr, WorkerState::idle, bench.now += 10);
  bench.probe.loop_item(bench.now, true);
  bench.probe.unblock(bench.now);
  bench.probe.leave(bench.now, false);
  bench.probe.finish(bench.now);
  EXPECT_EQ(bench.sum(), 50);
}

TEST(OperatorProbe, CostsNothingWhereNothingIsRecorded) {
  OperatorProbe probe;
  EXPECT_FALSE(probe.bound());
  {
    OperatorProbe::Call call(probe);
    call.fail();
  }
  WorkerBench bench;
  OperatorProbe bound(&bench.probe, &bench.cell(3));
  {
    OperatorProbe::Call call(bound);
    call.fail();
  }
  EXPECT_EQ(bench.cell(3).items.load(), 1U);
  EXPECT_EQ(bench.cell(3).failures.load(), 1U);
}

// --- any sequence of events ---

/// What a worker does, written down as intervals of loop time and nothing else.
struct Reference {
  struct Interval {
    std::int64_t from, to;
    std::uint32_t account;
  };
  std::vector<Interval> intervals;
  std::vector<int> stack;
  std::uint32_t rest = account_of(WorkerState::idle);
  bool blocked = false;
  std::uint32_t blocked_in = 0;
  std::int64_t last = 0;

  std::uint32_t open() const {
    if (blocked) return blocked_in;
    return stack.empty() ? rest : account_of_cell(stack.back());
  }
  void pass(std::int64_t loop_ns) {
    if (loop_ns > last) intervals.push_back({last, loop_ns, open()});
    last = std::max(last, loop_ns);
  }
  void begin_loop() {
    intervals.clear();
    last = 0;
  }
  std::int64_t total(std::uint32_t account, std::int64_t until) const {
    std::int64_t sum = 0;
    for (const Interval& one : intervals) {
      if (one.account == account && one.from < until) sum += std::min(one.to, until) - one.from;
    }
    return sum;
  }
};

class RandomWalk {
 public:
  explicit RandomWalk(std::uint64_t seed) : random_(seed) {}

  void run(int events, std::int64_t longest_ns) {
    const int begin_at = static_cast<int>(random_() % 40);
    for (int i = 0; i < events; ++i) {
      bench_.now += static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(longest_ns));
      reference_.pass(bench_.loop_ns());
      if (i == begin_at) {
        bench_.clock->resume(bench_.now);
        reference_.begin_loop();
      } else if (i > begin_at && random_() % 40 == 0) {
        // The loop clock moves by itself: the worker learns of it at its next event.
        if (bench_.clock->read(bench_.now).paused) {
          bench_.clock->resume(bench_.now);
        } else {
          bench_.clock->pause(bench_.now);
        }
      }
      event();
      check();
      if (testing::Test::HasFatalFailure()) return;
    }
    bench_.now += 1;
    reference_.pass(bench_.loop_ns());
    reference_.blocked = false;
    bench_.probe.finish(bench_.now);
    check();
    check_windows();
  }

 private:
  void event() {
    const std::int64_t now = bench_.now;
    switch (random_() % 7) {
      case 0:
      case 1: {
        const int cell = static_cast<int>(random_() % 4);
        if (reference_.blocked || reference_.stack.size() >= 12) return touch();
        bench_.probe.enter(bench_.cell(cell), now);
        reference_.stack.push_back(cell);
        return;
      }
      case 2:
      case 3:
        if (reference_.blocked || reference_.stack.empty()) return touch();
        bench_.probe.leave(now, random_() % 5 == 0);
        reference_.stack.pop_back();
        return;
      case 4: {
        const auto state = random_() % 2 == 0 ? WorkerState::blocked_in : WorkerState::blocked_out;
        bench_.probe.block(state, now);
        reference_.blocked = true;
        reference_.blocked_in = account_of(state);
        return;
      }
      case 5:
        if (!reference_.blocked) return touch();
        bench_.probe.unblock(now);
        reference_.blocked = false;
        return;
      default:
        if (reference_.blocked || !reference_.stack.empty()) return touch();
        if (random_() % 2 == 0) {
          const int loop = 4 + static_cast<int>(random_() % 2);
          bench_.probe.rest_in(&bench_.cell(loop), WorkerState::idle, now);
          bench_.probe.loop_item(now, true);
          reference_.rest = account_of_cell(loop);
        } else {
          bench_.probe.rest_in(nullptr, WorkerState::computing, now);
          reference_.rest = account_of(WorkerState::computing);
        }
        touch();  // asked for the state that it is in, the probe has nothing to do
    }
  }

  /// An event that changes no account, so that everything is charged up to now.
  void touch() {
    if (reference_.blocked) {
      bench_.probe.block(static_cast<WorkerState>(reference_.blocked_in), bench_.now);
    } else {
      bench_.probe.block(WorkerState::blocked_in, bench_.now);
      bench_.probe.unblock(bench_.now);
    }
  }

  void check() {
    ASSERT_EQ(bench_.sum(), bench_.loop_ns()) << "every nanosecond of loop time is in exactly one account";
    for (std::uint32_t state = 0; state < kWorkerStates; ++state) {
      ASSERT_EQ(bench_.total_of(state), reference_.total(state, INT64_MAX));
    }
    for (int i = 0; i < kCells; ++i) {
      const std::uint32_t account = account_of_cell(i);
      ASSERT_EQ(bench_.total_of(account), reference_.total(account, INT64_MAX));
    }
  }

  void check_windows() {
    const WindowGrid& grid = bench_.worker->grid;
    ASSERT_EQ(grid.closed.load(), static_cast<std::uint32_t>(bench_.loop_ns() / grid.width_ns()));
    for (std::uint32_t i = 0; i < grid.closed.load(); ++i) {
      const std::int64_t boundary = (i + 1) * grid.width_ns();
      for (std::uint32_t state = 0; state < kWorkerStates; ++state) {
        ASSERT_EQ(bench_.worker->windows.get(static_cast<int>(i), static_cast<int>(state)),
                  reference_.total(state, boundary));
      }
      for (int cell = 0; cell < kCells; ++cell) {
        if (bench_.cell(cell).items.load() == 0 && bench_.cell(cell).busy_ns.load() == 0) continue;
        ASSERT_EQ(bench_.cell(cell).windows.get(static_cast<int>(i), 0),
                  reference_.total(account_of_cell(cell), boundary));
      }
    }
  }

  std::mt19937_64 random_;
  WorkerBench bench_;
  Reference reference_;
};

TEST(WorkerProbe, AccountsForEveryNanosecondWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    // Short events, events as long as a window, events that make the windows double.
    RandomWalk(seed).run(250, seed % 3 == 0   ? 1000
                              : seed % 3 == 1 ? kFirstWindowNs / 2
                                              : 20 * kFirstWindowNs);
    if (HasFatalFailure()) return;
  }
}

TEST(WorkerProbe, NeverCountsNegativeOrDoubleTimeWhenTheClockJumps) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    WorkerBench bench;
    bench.clock->resume(bench.now);
    const std::int64_t began = bench.now;
    std::int64_t latest = bench.now;
    for (int i = 0; i < 500; ++i) {
      bench.now += static_cast<std::int64_t>(random() % 1'000'000);
      if (random() % 10 == 0) bench.now -= static_cast<std::int64_t>(random() % 5'000'000'000);
      latest = std::max(latest, bench.now);
      switch (random() % 4) {
        case 0:
          bench.probe.enter(bench.cell(static_cast<int>(random() % 3)), bench.now);
          break;
        case 1:
          bench.probe.leave(bench.now, false);
          break;
        case 2:
          bench.probe.block(WorkerState::blocked_in, bench.now);
          break;
        default:
          bench.probe.unblock(bench.now);
      }
      ASSERT_LE(bench.sum(), latest - began);
      for (const auto& state : bench.worker->state_ns) ASSERT_GE(state.load(), 0);
      for (int cell = 0; cell < kCells; ++cell) {
        ASSERT_GE(bench.cell(cell).busy_ns.load(), 0);
        ASSERT_GE(bench.cell(cell).service.sum_ns.load(), 0);
      }
    }
    ASSERT_GE(bench.probe.blocked_wall_ns(), 0);
  }
}

/// A writer that was killed: what it left open is closed at its last sign of life.
TEST(WorkerProbe, TakesOverWhatADeadWriterLeftOpen) {
  WorkerBench bench;
  bench.clock->resume(bench.now);
  const std::int64_t began = bench.now;
  bench.probe.enter(bench.cell(0), bench.now += 1000);
  // Nothing more is heard of it until:
  bench.now += 3 * kFirstWindowNs;
  WorkerProbe undertaker;
  OperatorCell* owned[] = {&bench.cell(0)};
  undertaker.take_over(*bench.worker, bench.cells.get(), owned, *bench.clock);
  undertaker.finish(bench.now);
  EXPECT_EQ(bench.cell(0).busy_ns.load(), 3 * kFirstWindowNs);
  EXPECT_EQ(bench.sum(), bench.now - began);
  EXPECT_EQ(bench.cell(0).windows.get(0, 0), kFirstWindowNs - 1000);
  EXPECT_EQ(bench.cell(0).windows.get(2, 0), 3 * kFirstWindowNs - 1000);
  EXPECT_EQ(bench.cell(0).items.load(), 0U);
}

}  // namespace
}  // namespace headrace::metrics
