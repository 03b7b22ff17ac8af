#include "headrace/metrics/sink_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "metrics/zeroed.h"
#include "support/times.h"

namespace headrace::metrics {
namespace {

/// The run around a sink, as the test says it is.
struct FakeSurroundings final : SinkSurroundings {
  explicit FakeSurroundings(LoopClock& clock) : clock(clock) {}
  void loop_began(std::int64_t now) noexcept override {
    ++began;
    clock.resume(now);
  }
  void loop_ended(std::int64_t now) noexcept override {
    ++ended;
    clock.pause(now);
  }
  int busy_workers() const noexcept override { return busy; }
  int in_service(int) const noexcept override { return service; }

  LoopClock& clock;
  int began = 0, ended = 0, busy = 0, service = kNobody;
};

/// One loop on a clock that only the test moves.
struct SinkBench {
  /// `with_source`: the wrapped object does the work itself, inside GetNext.
  explicit SinkBench(bool with_source = false) {
    clock->open(now);
    worker.bind(worker_cell.get(), cells.get(), clock.get(), now);
    sink.bind(cell.get(), &worker, with_source ? &cells[0] : nullptr, clock.get(), &surroundings);
    sink.listen_to(marks);
  }
  /// A GetNext of which `blocked` was spent waiting at a recorded queue, then the step's compute.
  void step(std::int64_t wait, std::int64_t blocked, std::int64_t compute) {
    sink.begin_wait(now);
    if (blocked > 0) {
      worker.block(WorkerState::blocked_in, now);
      worker.unblock(now += blocked);
    }
    sink.end_wait(now += wait - blocked, true, false);
    now += compute;
  }
  /// A step in parts, told as hooks tell it: forward and backward in two pieces.
  void marked_step(std::int64_t wait, std::int64_t before, std::int64_t forward_backward, std::int64_t tail) {
    step(wait, wait, before);
    marks.forward_began(now);
    marks.backward_ended(now += forward_backward / 2);
    marks.forward_began(now);
    marks.backward_ended(now += forward_backward - forward_backward / 2);
    now += tail;
  }
  void exhaust(std::int64_t wait = 0) {
    sink.begin_wait(now);
    sink.end_wait(now += wait, false, false);
  }

  std::int64_t now = 1'000 * kMs;
  Zeroed<LoopClock> clock;
  Zeroed<WorkerCell> worker_cell;
  Zeroed<OperatorCell> cells{2};
  Zeroed<SinkCell> cell;
  WorkerProbe worker;
  FakeSurroundings surroundings{*clock};
  StepMarks marks;
  SinkProbe sink;
};

TEST(SinkProbe, KeepsTheFirstBatchApart) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.now += 3 * kMs;                // between iter() and the first next()
  bench.step(900 * kMs, 0, 10 * kMs);  // the first batch
  bench.step(2 * kMs, 2 * kMs, 10 * kMs);
  bench.exhaust();
  EXPECT_EQ(bench.cell->first_batch_ns.load(), 903 * kMs);
  EXPECT_EQ(bench.cell->steps.load(), 2U);
  EXPECT_EQ(bench.cell->waits.load(), 1);
  EXPECT_EQ(bench.cell->wait_ns.load(), 2 * kMs);
  EXPECT_EQ(bench.cell->computes.load(), 2);
  EXPECT_EQ(bench.cell->compute_ns.load(), 20 * kMs);
  EXPECT_EQ(bench.cell->epochs.load(), 1U);
  EXPECT_EQ(bench.cell->active.load(), 0U);
  EXPECT_EQ(bench.surroundings.began, 1);
  EXPECT_EQ(bench.surroundings.ended, 1);
  EXPECT_EQ(bench.clock->read(bench.now).loop_ns, 22 * kMs) << "from the first delivery to the end";
}

TEST(SinkProbe, TellsReadyFromStarvedByTheQueues) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.surroundings.service = 5;
  bench.step(7 * kMs, 6 * kMs, kMs);  // waited at a queue: starved, and operator 5 was in service
  bench.surroundings.service = SinkSurroundings::kNobody;
  bench.step(4 * kMs, 4 * kMs, kMs);  // starved, nobody knows why
  bench.step(kMs / 2, 0, kMs);        // ready: what it took was the hand-over
  EXPECT_EQ(bench.cell->waits.load(), 3);
  EXPECT_EQ(bench.cell->ready_calls.load(), 1);
  EXPECT_EQ(bench.cell->ready_wait_ns.load(), kMs / 2);
  EXPECT_EQ(bench.cell->starved_ns.load(), 11 * kMs);
  EXPECT_EQ(bench.cell->ledger[5].load(), 6 * kMs);
  EXPECT_EQ(bench.cell->ledger_unknown_ns.load(), 4 * kMs);
  EXPECT_EQ(bench.cell->wait_ns.load(), bench.cell->starved_ns.load() + bench.cell->ready_wait_ns.load());
}

TEST(SinkProbe, BelievesAnAdapterThatKnows) {
  SinkBench bench(true);
  bench.sink.begin_epoch(bench.now);
  bench.step(kMs, 0, kMs);
  for (const int ready : {1, 0, 1}) {
    bench.sink.begin_wait(bench.now);
    bench.sink.end_wait(bench.now += 3 * kMs, true, false, ready);
    bench.now += kMs;
  }
  EXPECT_EQ(bench.cell->ready_calls.load(), 2);
  EXPECT_EQ(bench.cell->starved_ns.load(), 3 * kMs);
}

TEST(SinkProbe, ChargesTheWrappedObjectWithItsOwnTime) {
  SinkBench bench(true);
  bench.sink.begin_epoch(bench.now);
  bench.step(10 * kMs, 0, kMs);
  bench.step(10 * kMs, 4 * kMs, kMs);
  EXPECT_EQ(bench.cells[0].items.load(), 2U);
  EXPECT_EQ(bench.cells[0].loop_items.load(), 1);
  EXPECT_EQ(bench.cells[0].busy_ns.load(), 6 * kMs) << "not the time at a recorded queue, not start-up";
  EXPECT_EQ(bench.cell->ready_calls.load(), 0) << "nobody knows whether its batch was ready";
}

TEST(SinkProbe, RedirectsTheWrappedObjectsTimeToWhoWasInService) {
  SinkBench bench(true);
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.surroundings.service = 3;
  bench.step(8 * kMs, 0, kMs);
  EXPECT_EQ(bench.cell->redirected_ns.load(), 8 * kMs);
  EXPECT_EQ(bench.cell->ledger[3].load(), 8 * kMs);
}

TEST(SinkProbe, PartitionsTheThreadsTime) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(20 * kMs, 20 * kMs, 5 * kMs);
  for (int i = 0; i < 10; ++i) bench.step(3 * kMs, 2 * kMs, 5 * kMs);
  bench.exhaust();
  const auto& states = bench.worker_cell->state_ns;
  std::int64_t sum = 0;
  for (const auto& state : states) sum += state.load();
  EXPECT_EQ(sum, bench.clock->read(bench.now).loop_ns);
  EXPECT_EQ(states[static_cast<std::size_t>(WorkerState::blocked_in)].load(), 20 * kMs);
}

TEST(SinkProbe, DropsTheStepThatWasCutShort) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.step(kMs, 0, 100 * kMs);
  bench.sink.end_loop(bench.now);  // break, or the iterator was dropped
  EXPECT_EQ(bench.cell->computes.load(), 1);
  EXPECT_EQ(bench.cell->compute_ns.load(), kMs);
  EXPECT_EQ(bench.cell->active.load(), 0U);
  bench.sink.end_loop(bench.now += kMs);
  EXPECT_EQ(bench.surroundings.ended, 1) << "ending twice is harmless";
  bench.step(kMs, kMs, kMs);
  EXPECT_EQ(bench.cell->steps.load(), 2U) << "after the end nothing is recorded";
}

TEST(SinkProbe, CountsAWaitThatWasInterrupted) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.sink.begin_wait(bench.now);
  EXPECT_EQ(bench.cell->waiting.load(), 1U);
  bench.sink.end_loop(bench.now += kMs);
  EXPECT_EQ(bench.cell->waiting.load(), 0U);
  EXPECT_EQ(bench.cell->waits.load(), 0);
}

TEST(SinkProbe, CountsAFailure) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.sink.begin_wait(bench.now);
  bench.sink.end_wait(bench.now += kMs, false, true);  // raised at item 0
  EXPECT_EQ(bench.cell->failed.load(), 1U);
  EXPECT_EQ(bench.cell->steps.load(), 0U);
  EXPECT_EQ(bench.surroundings.began, 0);
  EXPECT_EQ(bench.surroundings.ended, 0);
  EXPECT_FALSE(bench.sink.in_loop());
  EXPECT_FALSE(bench.clock->read(bench.now).begun);
}

TEST(SinkProbe, CountsLaterEpochsOnTheirOwn) {
  SinkBench bench;
  for (const std::int64_t start_up : {500 * kMs, 40 * kMs, 60 * kMs}) {
    bench.sink.begin_epoch(bench.now);
    bench.step(start_up, 0, 2 * kMs);
    bench.step(kMs, 0, 2 * kMs);
    bench.exhaust();
    bench.now += 10'000 * kMs;  // validation
  }
  EXPECT_EQ(bench.cell->epochs.load(), 3U);
  EXPECT_EQ(bench.cell->steps.load(), 6U);
  EXPECT_EQ(bench.cell->first_batch_ns.load(), 500 * kMs);
  EXPECT_EQ(bench.cell->later_epochs_ns.load(), 100 * kMs);
  EXPECT_EQ(bench.cell->waits.load(), 3);
  EXPECT_EQ(bench.cell->compute_ns.load(), 12 * kMs);
  EXPECT_EQ(bench.clock->read(bench.now).loop_ns, 15 * kMs);
}

TEST(SinkProbe, LeavesOutWhatOtherLoopsTook) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.step(kMs, 0, 50 * kMs);
  bench.sink.exclude(30 * kMs);
  bench.step(kMs, 0, 50 * kMs);
  bench.exhaust();
  EXPECT_EQ(bench.cell->compute_ns.load(), (1 + 20 + 50) * kMs);
}

TEST(SinkProbe, CutsStepsWhereMarksSay) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.marked_step(9 * kMs, kMs, kMs, kMs);  // the first one has no steady wait: it is in no sum
  for (int i = 0; i < 4; ++i) bench.marked_step(3 * kMs, 2 * kMs, 20 * kMs, 5 * kMs);
  bench.exhaust();
  EXPECT_EQ(bench.cell->whole_steps.load(), 4);
  EXPECT_EQ(bench.cell->marked_steps.load(), 4);
  EXPECT_EQ(bench.cell->tail_steps.load(), 4);
  EXPECT_EQ(bench.cell->marked_gap_ns.load(), 4 * 5 * kMs) << "the wait, and from the batch to forward";
  EXPECT_EQ(bench.cell->marked_forward_backward_ns.load(), 4 * 20 * kMs) << "first beginning to last end";
  EXPECT_EQ(bench.cell->marked_tail_ns.load(), 4 * 5 * kMs);
  for (int i = 1; i < 5; ++i) {
    const auto& step = bench.cell->sequence[static_cast<std::size_t>(i)];
    const double compute = step.compute_ns.load();
    EXPECT_NEAR(step.before_forward.of(compute), 2.0 * kMs, compute / 65'534);
    EXPECT_NEAR(step.tail.of(compute), 5.0 * kMs, compute / 65'534);
  }
}

TEST(SinkProbe, StepsWithoutMarksHaveNoParts) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.marked_step(kMs, kMs, 4 * kMs, kMs);
  bench.step(kMs, kMs, 7 * kMs);
  bench.exhaust();
  bench.marks.forward_began(bench.now += kMs);  // nobody listens between epochs
  bench.sink.begin_epoch(bench.now);
  bench.step(kMs, kMs, kMs);
  bench.step(kMs, kMs, kMs);
  bench.exhaust();
  EXPECT_EQ(bench.cell->whole_steps.load(), 3);
  EXPECT_EQ(bench.cell->marked_steps.load(), 1);
  EXPECT_GE(bench.cell->sequence[1].before_forward.of(1), 0);
  for (const std::size_t unmarked : {std::size_t{0}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    EXPECT_LT(bench.cell->sequence[unmarked].before_forward.of(1), 0);
    EXPECT_LT(bench.cell->sequence[unmarked].tail.of(1), 0);
  }
}

TEST(SinkProbe, AStepWithoutAnEndOfBackwardHasNoTail) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.step(kMs, kMs, 2 * kMs);
  bench.marks.forward_began(bench.now);
  bench.now += 8 * kMs;
  bench.exhaust();
  EXPECT_EQ(bench.cell->marked_steps.load(), 1);
  EXPECT_EQ(bench.cell->tail_steps.load(), 0);
  EXPECT_EQ(bench.cell->marked_forward_backward_ns.load(), 8 * kMs);
  EXPECT_LT(bench.cell->sequence[1].tail.of(1), 0);
}

TEST(SinkProbe, TwoLoopsThatTakeTurnsKeepTheirOwnParts) {
  SinkBench first;
  SinkBench second;
  second.sink.listen_to(first.marks);
  std::int64_t& now = first.now;
  first.sink.begin_epoch(now);
  second.sink.begin_epoch(now);
  constexpr std::int64_t kWait = 4 * kMs;
  for (int i = 0; i < 3; ++i) {  // for a, b in zip(first, second)
    first.step(kWait, kWait, 0);
    if (i > 0) second.sink.exclude(kWait);
    second.now = now;
    second.step(kWait, kWait, 0);
    now = second.now;
    first.sink.exclude(kWait);
    now += 2 * kMs;
    first.marks.forward_began(now);
    first.marks.backward_ended(now += 10 * kMs);
    now += 3 * kMs;
  }
  first.exhaust();
  second.now = now;
  second.exhaust();
  for (const SinkBench* bench : {&first, &second}) {
    EXPECT_EQ(bench->cell->marked_steps.load(), 2);
    EXPECT_EQ(bench->cell->marked_gap_ns.load(), 2 * (kWait + 2 * kMs)) << "its own wait, not the other's";
    EXPECT_EQ(bench->cell->marked_forward_backward_ns.load(), 2 * 10 * kMs);
    EXPECT_EQ(bench->cell->marked_tail_ns.load(), 2 * 3 * kMs);
  }
}

TEST(SinkProbe, AWholeLoopWithinAStepLeavesItWithoutParts) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.marked_step(kMs, kMs, 4 * kMs, 0);
  bench.sink.exclude_loop(0);  // validation, whose forwards were marked like any
  bench.marked_step(kMs, kMs, 4 * kMs, kMs);
  bench.exhaust();
  EXPECT_EQ(bench.cell->whole_steps.load(), 2);
  EXPECT_EQ(bench.cell->marked_steps.load(), 1);
}

TEST(SinkProbe, KnowsQuietSteps) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.surroundings.busy = 2;
  bench.step(kMs, 0, 4 * kMs);
  bench.surroundings.busy = 0;
  bench.step(kMs, 0, 3 * kMs);  // a worker was busy when the step before began: not quiet
  bench.exhaust();
  EXPECT_EQ(bench.cell->quiet_steps.load(), 1);
  EXPECT_EQ(bench.cell->quiet_compute_ns.load(), 3 * kMs);
}

TEST(SinkProbe, RemembersTheLongestWaits) {
  std::mt19937_64 random(11);
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 300; ++i) {
    waits.push_back(static_cast<std::int64_t>(random() % 1'000'000) * 512 + i);
    bench.step(waits.back(), waits.back(), kMs);
  }
  std::sort(waits.rbegin(), waits.rend());
  std::vector<std::int64_t> held;
  for (const LongestWait& entry : bench.cell->longest) held.push_back(entry.wait_ns.load());
  std::sort(held.rbegin(), held.rend());
  waits.resize(held.size());
  EXPECT_EQ(held, waits);
}

TEST(SinkProbe, KeepsTheNewestSteps) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, 1);
  constexpr int kSteps = 700;
  for (int i = 1; i <= kSteps; ++i) bench.step(i, i, 2 * i);
  bench.exhaust();
  ASSERT_EQ(bench.cell->computes.load(), kSteps + 1);
  for (int i = kSteps - static_cast<int>(SinkCell::kSequence) + 1; i <= kSteps; ++i) {
    const auto& step = bench.cell->sequence[static_cast<std::size_t>(i) % SinkCell::kSequence];
    EXPECT_EQ(step.wait_ns.load(), static_cast<float>(i));
    EXPECT_EQ(step.compute_ns.load(), static_cast<float>(2 * i));
  }
}

/// Steps of every length against a list of what happened: each window holds what passed until its end,
/// whether a wait or a compute was open at that moment.
TEST(SinkProbe, WindowsEqualABruteForce) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    std::mt19937_64 random(seed);
    SinkBench bench;
    struct Interval {
      std::int64_t from, to;
      bool wait, starved;
    };
    std::vector<Interval> intervals;
    std::vector<std::int64_t> deliveries;
    const auto loop_ns = [&] { return bench.clock->read(bench.now).loop_ns; };
    for (int epoch = 0; epoch < 3; ++epoch) {
      bench.sink.begin_epoch(bench.now);
      bench.step(70 * kMs, 0, 0);
      const std::int64_t longest = seed % 2 == 0 ? 30 * kMs : 700 * kMs;
      for (int i = 0; i < 80; ++i) {
        const auto compute = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
        const auto wait = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
        const bool starved = random() % 2 == 0;
        std::int64_t from = loop_ns();
        bench.now += compute;
        intervals.push_back({from, loop_ns(), false, false});
        from = loop_ns();
        bench.step(wait, starved ? std::max<std::int64_t>(1, wait) : 0, 0);
        intervals.push_back({from, loop_ns(), true, starved});
        deliveries.push_back(loop_ns());
      }
      // The last wait brings no batch: its time is nobody's.
      const std::int64_t from = loop_ns();
      bench.now += kMs;
      intervals.push_back({from, loop_ns(), false, false});
      bench.exhaust(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest)));
      bench.now += 5000 * kMs;
    }
    const WindowGrid& grid = bench.cell->grid;
    ASSERT_GT(grid.closed.load(), 10U);
    for (std::uint32_t i = 0; i < grid.closed.load(); ++i) {
      const std::int64_t boundary = (i + 1) * grid.width_ns();
      std::int64_t wait = 0, starved = 0, compute = 0;
      for (const Interval& one : intervals) {
        const std::int64_t lasted = std::max<std::int64_t>(0, std::min(one.to, boundary) - one.from);
        (one.wait ? wait : compute) += lasted;
        starved += one.starved ? lasted : 0;
      }
      const auto delivered =
          std::count_if(deliveries.begin(), deliveries.end(), [&](auto at) { return at < boundary; });
      const int window = static_cast<int>(i);
      ASSERT_EQ(bench.cell->windows.get(window, 0), delivered) << "seed " << seed << " window " << i;
      ASSERT_EQ(bench.cell->windows.get(window, 1), wait) << "seed " << seed << " window " << i;
      ASSERT_EQ(bench.cell->windows.get(window, 2), starved) << "seed " << seed << " window " << i;
      ASSERT_EQ(bench.cell->windows.get(window, 3), compute) << "seed " << seed << " window " << i;
    }
  }
}

TEST(SinkProbe, SurvivesAClockThatJumpsBack) {
  std::mt19937_64 random(12);
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(kMs, 0, kMs);
  for (int i = 0; i < 1000; ++i) {
    bench.step(static_cast<std::int64_t>(random() % 1'000'000), 0,
               static_cast<std::int64_t>(random() % 1'000'000));
    if (random() % 2 == 0) bench.marks.forward_began(bench.now);
    if (random() % 2 == 0) bench.marks.backward_ended(bench.now);
    if (random() % 5 == 0) bench.now -= static_cast<std::int64_t>(random() % 10'000'000);
  }
  bench.exhaust();
  EXPECT_GE(bench.cell->wait_ns.load(), 0);
  EXPECT_GE(bench.cell->compute_ns.load(), 0);
  EXPECT_GE(bench.cell->starved_ns.load(), 0);
  for (const auto* sum :
       {&bench.cell->marked_gap_ns, &bench.cell->marked_forward_backward_ns, &bench.cell->marked_tail_ns}) {
    EXPECT_GE(sum->load(), 0);
  }
  for (const auto& step : bench.cell->sequence) {
    EXPECT_GE(step.wait_ns.load(), 0);
    EXPECT_GE(step.compute_ns.load(), 0);
  }
}

TEST(SinkProbe, OutlivesItsThread) {
  SinkBench bench;
  bench.sink.begin_epoch(bench.now);
  bench.step(0, 0, kMs);
  bench.sink.forget_worker();
  bench.sink.begin_wait(bench.now);
  bench.sink.end_wait(bench.now += kMs, true, false);
  bench.sink.end_loop(bench.now);
  EXPECT_EQ(bench.cell->active.load(), 0U);
  EXPECT_EQ(bench.surroundings.ended, 1);
}

TEST(SinkProbe, NotesWhatAGetNextTouched) {
  SinkBench bench;
  bench.sink.took_from(0);
  bench.sink.took_from(63);
  bench.sink.took_from(64);
  bench.sink.took_from(-1);
  bench.sink.ran(0);
  bench.sink.ran(127);
  bench.sink.ran(kLedgerOperators);
  bench.sink.ran(-1);
  EXPECT_EQ(bench.cell->queues.load(), (std::uint64_t{1} << 63) | 1);
  EXPECT_EQ(bench.cell->operators[0].load(), 1U);
  EXPECT_EQ(bench.cell->operators[1].load(), std::uint64_t{1} << 63);
}

}  // namespace
}  // namespace headrace::metrics
