#include "headrace/profile/registry.h"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/figures.h"
#include "headrace/profile/snapshot.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

using metrics::Place;
using metrics::WorkerState;

struct Bench {
  std::unique_ptr<Segment> segment = Segment::create({"", ""}, 0);
  Registry registry{*segment};

  std::string operator_name(int id) const { return std::string(segment->operators()[id].name.view()); }
  std::string queue_name(int id) const { return std::string(segment->queues()[id].name.view()); }
  std::string loader_name(int id) const { return std::string(segment->loaders()[id].name.view()); }
};

TEST(Registry, FindsTheSameOperatorAgain) {
  Bench bench;
  const int id = bench.registry.operator_id({.name = "decode", .kind = "map", .key = 7});
  EXPECT_EQ(bench.registry.operator_id({.name = "decode", .kind = "map", .key = 7}), id);
  EXPECT_EQ(bench.operator_name(id), "decode");
}

TEST(Registry, NumbersOperatorsOfOneName) {
  Bench bench;
  const int first = bench.registry.operator_id({.name = "f", .kind = "map", .key = 1});
  const int other_code = bench.registry.operator_id({.name = "f", .kind = "map", .key = 2});
  const int other_kind = bench.registry.operator_id({.name = "f", .kind = "batch", .key = 1});
  EXPECT_EQ(std::set({first, other_code, other_kind}).size(), 3U);
  EXPECT_EQ(bench.operator_name(other_code), "f#2");
  EXPECT_EQ(bench.operator_name(other_kind), "f#3");
  EXPECT_EQ(bench.registry.operator_id({.name = "f", .kind = "map", .key = 2}), other_code);
  EXPECT_EQ(bench.registry.operator_id({.name = "f", .kind = "batch", .key = 1}), other_kind);
}

TEST(Registry, CountsOperatorsThatDoNotFit) {
  Bench bench;
  for (int i = 0; i < 500; ++i) {
    const int id = bench.registry.operator_id({.name = "operator " + std::to_string(i)});
    EXPECT_EQ(id, i < static_cast<int>(kMaxOperators) ? i : -1);
  }
  EXPECT_EQ(bench.segment->header().dropped.operators.load(), 500U - kMaxOperators);
  EXPECT_EQ(bench.registry.operator_id({.name = "operator 5"}), 5) << "what is in the table is still found";
}

TEST(Registry, KeepsOddNames) {
  Bench bench;
  std::string accents;
  while (accents.size() < 10'000) accents += "\xC3\xA9";
  for (const std::string& name :
       {std::string("two\nlines"), std::string(10'000, 'x'), accents, std::string("[bold]<b>")}) {
    const int id = bench.registry.operator_id({.name = name, .kind = "a kind that is longer than its field"});
    ASSERT_GE(id, 0);
    EXPECT_EQ(bench.registry.operator_id({.name = name, .kind = "a kind that is longer than its field"}), id);
    const int other = bench.registry.operator_id({.name = name, .kind = "map"});
    EXPECT_NE(other, id);
    const std::string kept = bench.operator_name(other);
    EXPECT_LT(kept.size(), kNameBytes);
    EXPECT_EQ(kept.substr(kept.size() - 2), "#2") << "a long name leaves room for its number";
    EXPECT_NE(static_cast<unsigned char>(kept[kept.size() - 3]) & 0xC0U, 0xC0U)
        << "no half character before it";
  }
  EXPECT_GE(bench.registry.operator_id({.name = ""}), 0);
}

TEST(Registry, NumbersQueuesAndReusesClosedOnes) {
  Bench bench;
  const int first = bench.registry.queue_id("decoded", 16);
  const int second = bench.registry.queue_id("decoded", 16);
  EXPECT_NE(first, second) << "two queues, not one queue twice";
  EXPECT_EQ(bench.queue_name(second), "decoded#2");
  bench.segment->queues()[first].life.store(static_cast<std::uint32_t>(RecordLife::closed));
  EXPECT_NE(bench.registry.queue_id("decoded", 32), first) << "another size is another queue";
  EXPECT_EQ(bench.registry.queue_id("decoded", 16), first) << "the next epoch's";
}

TEST(Registry, GivesEachQueueItsOwnBins) {
  Bench bench;
  std::uint32_t end = 0;
  for (int i = 0; i < static_cast<int>(kMaxQueues); ++i) {
    const std::int64_t capacity = i % 3 == 0 ? 0 : i % 3 == 1 ? 8 : 1000;
    const int id = bench.registry.queue_id("queue " + std::to_string(i), capacity);
    ASSERT_EQ(id, i);
    const metrics::QueueCell& cell = bench.segment->queues()[id].cell;
    EXPECT_GE(cell.first_bin.load(), end);
    end = cell.first_bin.load() + cell.bins.load();
    EXPECT_LE(end, kMaxBins);
  }
  EXPECT_EQ(bench.registry.queue_id("one more", 8), -1);
  EXPECT_EQ(bench.segment->header().dropped.queues.load(), 1U);
}

TEST(Registry, GivesWideQueuesCoarserBinsWhenTheyRunOut) {
  Bench bench;
  std::set<std::uint32_t> kinds;
  for (int i = 0; i < 30; ++i) {
    const int id = bench.registry.queue_id("queue " + std::to_string(i), INT64_MAX - i);
    ASSERT_GE(id, 0);
    kinds.insert(bench.segment->queues()[id].cell.bins.load());
  }
  EXPECT_GT(kinds.size(), 1U);
  EXPECT_LE(bench.segment->header().bins_used.load(), kMaxBins);
}

TEST(Registry, FoldsEarlierLoaders) {
  Bench bench;
  constexpr int kLoaders = 300;
  std::uint64_t steps = 0;
  for (int i = 0; i < kLoaders; ++i) {
    const int id = bench.registry.loader_id("eval", -1);
    ASSERT_GE(id, 0) << i;
    LoaderRecord& record = bench.segment->loaders()[id];
    EXPECT_EQ(record.sink.steps.load(), 0U) << "a record that is given out again is empty";
    record.sink.steps.store(static_cast<std::uint64_t>(i));
    record.sink.wait_ns.store(10);
    record.sink.sampled_compute_ns.store(7);
    record.sink.quiet_steps.store(2);
    record.sink.whole_steps.store(3);
    record.sink.marked_steps.store(1);
    record.sink.first_batch_ns.store(4);
    record.sink.remember_longest(i, 1000 + i, 5);
    record.sink.last_event_ns.store(i);
    record.life.store(static_cast<std::uint32_t>(RecordLife::closed));
    steps += static_cast<std::uint64_t>(i);
  }
  SegmentImage image;
  image.read_memory(bench.segment->data(), bench.segment->size());
  std::uint64_t seen = 0;
  double waited = 0;
  double first = 0;
  SinkFigures sum;
  bool earlier = false;
  for (const LoaderSummary& loader : list_loaders(image)) {
    seen += loader.steps;
    waited += loader.wait_s - loader.first_batches_s;
    first += loader.first_batches_s;
    const SinkFigures sink = SegmentFigures::of(image, loader.index).sink;
    sum.sampled_compute_ns += sink.sampled_compute_ns;
    sum.quiet_steps += sink.quiet_steps;
    sum.whole_steps += sink.whole_steps;
    sum.marked_steps += sink.marked_steps;
    sum.later_epochs_ns += sink.first_batch_ns + sink.later_epochs_ns;
    if (loader.name == "(earlier loaders)") {
      EXPECT_EQ(sink.first_batch_ns, 4);
      // The longest are those of the loaders that were folded last.
      const auto longest = read_profile(image, loader.index).sink.longest_waits;
      ASSERT_EQ(longest.size(), 8U);
      EXPECT_NEAR(longest[0].wait_s - longest[7].wait_s, 7e-9, 1e-12);
    }
    earlier |= loader.name == "(earlier loaders)";
  }
  EXPECT_EQ(seen, steps);
  EXPECT_NEAR(waited, kLoaders * 10e-9, 1e-12);
  EXPECT_NEAR(first, kLoaders * 4e-9, 1e-12);
  EXPECT_EQ(sum.sampled_compute_ns, kLoaders * 7);
  EXPECT_EQ(sum.quiet_steps, kLoaders * 2);
  EXPECT_EQ(sum.whole_steps, kLoaders * 3);
  EXPECT_EQ(sum.marked_steps, kLoaders);
  EXPECT_EQ(sum.later_epochs_ns, kLoaders * 4);
  EXPECT_TRUE(earlier);
  EXPECT_EQ(bench.segment->header().dropped.loaders.load(), 0U);
}

TEST(Registry, RefusesLoadersWhenAllAreInUse) {
  Bench bench;
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < kMaxLoaders; ++i)
    names.insert(bench.loader_name(bench.registry.loader_id("train", -1)));
  EXPECT_EQ(names.size(), kMaxLoaders);
  EXPECT_EQ(bench.registry.loader_id("train", -1), -1);
  EXPECT_EQ(bench.segment->header().dropped.loaders.load(), 1U);
}

TEST(Registry, CountsWorkersAndCellsThatDoNotFit) {
  Bench bench;
  metrics::WorkerCell* worker = nullptr;
  for (std::uint32_t i = 0; i < kMaxWorkers; ++i) {
    worker = bench.registry.claim_worker(1);
    ASSERT_NE(worker, nullptr);
  }
  EXPECT_EQ(bench.registry.claim_worker(1), nullptr);
  for (std::uint32_t i = 0; i < kMaxCells; ++i) {
    ASSERT_NE(bench.registry.claim_cell(*worker, 0, Place::worker, false), nullptr);
  }
  EXPECT_EQ(bench.registry.claim_cell(*worker, 0, Place::worker, false), nullptr);
  EXPECT_EQ(bench.segment->header().dropped.workers.load(), 1U);
  EXPECT_EQ(bench.segment->header().dropped.cells.load(), 1U);
}

// --- several processes ---

TEST(Registry, NeverGivesOneRecordToTwoProcesses) {
  const ScratchFolder folder;
  const auto segment = Segment::create({folder / "a.hrseg", ""}, 0);
  constexpr int kProcesses = 6;
  constexpr int kClaims = 30;
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    children.push_back(in_child([&] {
      const auto mine = Segment::attach(folder / "a.hrseg");
      Registry registry(*mine);
      for (int i = 0; i < kClaims; ++i) {
        // All processes meet the same operators at the same moment; each has a queue of its own.
        const int op = registry.operator_id({.name = "operator " + std::to_string(i), .key = 5});
        metrics::WorkerCell* worker = registry.claim_worker(1);
        ASSERT_NE(worker, nullptr);
        metrics::OperatorCell* cell = registry.claim_cell(*worker, op, Place::worker, false);
        ASSERT_NE(cell, nullptr);
        cell->items.bump(1);  // would be 2 in a cell that two have
        worker->edges[0].items.bump(1);
        if (i % 4 == 0) {
          ASSERT_GE(registry.queue_id("queue", 8), 0);
        }
      }
    }));
  }
  for (const pid_t child : children) expect_success(child);
  std::map<std::string, int> operators;
  std::set<std::string> queues;
  int workers = 0, cells = 0;
  for (std::uint32_t i = 0; i < kMaxOperators; ++i) {
    const OperatorRecord& record = segment->operators()[i];
    if (record.life.load() != 0) ++operators[std::string(record.name.view())];
  }
  EXPECT_EQ(operators.size(), static_cast<std::size_t>(kClaims));
  for (const auto& [name, records] : operators) EXPECT_EQ(records, 1) << name << " was made twice";
  for (std::uint32_t i = 0; i < kMaxQueues; ++i) {
    if (segment->queues()[i].life.load() != 0) queues.insert(std::string(segment->queues()[i].name.view()));
  }
  EXPECT_EQ(queues.size(), static_cast<std::size_t>(kProcesses * ((kClaims + 3) / 4)));
  for (std::uint32_t i = 0; i < kMaxWorkers; ++i)
    workers += segment->workers()[i].edges[0].items.load() == 1 ? 1 : 0;
  for (std::uint32_t i = 0; i < kMaxCells; ++i) cells += segment->cells()[i].items.load() == 1 ? 1 : 0;
  EXPECT_EQ(workers, kProcesses * kClaims);
  EXPECT_EQ(cells, kProcesses * kClaims);
}

TEST(Registry, PassesOverARecordWhoseMakerDied) {
  Bench bench;
  bench.registry.operator_id({.name = "a"});
  bench.segment->operators()[1].life.store(static_cast<std::uint32_t>(RecordLife::claimed));
  EXPECT_EQ(bench.registry.operator_id({.name = "b"}), 2);
  EXPECT_EQ(bench.registry.operator_id({.name = "a"}), 0);
}

TEST(Registry, ALoaderThatTakesAnothersPlaceHasNothingOfIts) {
  Bench bench;
  LoaderRecord* loaders = bench.segment->loaders();
  for (std::uint32_t i = 0; i < kMaxLoaders; ++i) {
    const int id = bench.registry.loader_id("loader " + std::to_string(i), -1);
    loaders[id].has_own_graph.store(1);
    loaders[id].workers.store(2);
    loaders[id].handoff.batches.store(7);
    loaders[id].facts[0] = 'x';
    loaders[id].life.store(static_cast<std::uint32_t>(RecordLife::closed));
  }
  const int op = bench.registry.operator_id({.name = "Numbers", .kind = "source", .loader = 1});
  const int queue = bench.registry.queue_id({.name = "results", .capacity = 4, .loader = 1});
  metrics::WorkerCell* worker = bench.registry.claim_worker(1);
  metrics::OperatorCell* cell = bench.registry.claim_cell(*worker, op, Place::get_next, false);
  cell->items.store(5);
  cell->busy_ns.store(50);
  bench.segment->queues()[queue].cell.puts.store(9);
  bench.segment->queues()[queue].life.store(static_cast<std::uint32_t>(RecordLife::closed));
  const int next = bench.registry.loader_id("the next one", -1);
  ASSERT_EQ(next, 1) << "the first one holds the sums of earlier ones";
  EXPECT_EQ(loaders[next].has_own_graph.load(), 0U);
  EXPECT_EQ(loaders[next].workers.load(), 0U);
  EXPECT_EQ(loaders[next].handoff.batches.load(), 0);
  EXPECT_EQ(loaders[next].facts[0], '\0');
  EXPECT_EQ(cell->items.load(), 0U) << "a thread that goes on has an empty cell for whatever is next";
  EXPECT_EQ(cell->busy_ns.load(), 0);
  const int read = bench.registry.operator_id({.name = "Read", .kind = "map", .loader = next});
  EXPECT_EQ(bench.operator_name(read), "Read");
  EXPECT_EQ(bench.segment->operators()[read].loader.load(), static_cast<std::uint32_t>(next + 1));
  const int decoded = bench.registry.queue_id({.name = "decoded", .capacity = 4, .loader = next});
  EXPECT_EQ(bench.queue_name(decoded), "decoded");
  EXPECT_EQ(bench.segment->queues()[decoded].cell.puts.load(), 0U);
}

TEST(Registry, WhatBelongsToClosedLoadersMakesRoom) {
  Bench bench;
  LoaderRecord* loaders = bench.segment->loaders();
  for (int i = 0; i < 500; ++i) {
    const int id = bench.registry.loader_id("train", -1);
    ASSERT_GE(id, 0) << i;
    const int capacity = 4 + i % 3;
    for (const char* name : {"read", "decode", "collate", "copy"}) {
      const int op = bench.registry.operator_id({.name = name, .kind = "map", .loader = id});
      ASSERT_GE(op, 0) << i;
      EXPECT_EQ(bench.operator_name(op), name) << "names are unique within one loader only";
      const int queue = bench.registry.queue_id({.name = name, .capacity = capacity, .loader = id});
      ASSERT_GE(queue, 0) << i;
      EXPECT_EQ(bench.segment->queues()[queue].cell.capacity.load(), capacity);
      bench.segment->queues()[queue].life.store(static_cast<std::uint32_t>(RecordLife::closed));
    }
    loaders[id].life.store(static_cast<std::uint32_t>(RecordLife::closed));
  }
  EXPECT_EQ(bench.segment->header().dropped.operators.load(), 0U);
  EXPECT_EQ(bench.segment->header().dropped.queues.load(), 0U);
}

TEST(Registry, AWrappedObjectIsOneLoadersOnly) {
  Bench bench;
  const OperatorSpec spec{.name = "slow", .kind = "generator", .key = 7, .flags = kIsWrappedObject};
  const int first = bench.registry.operator_id(spec);
  const int train = bench.registry.loader_id("train", first);
  const int second = bench.registry.operator_id(spec);
  bench.registry.loader_id("validation", second);
  EXPECT_NE(second, first);
  OperatorSpec again = spec;
  again.feeds = train;
  EXPECT_EQ(bench.registry.operator_id(again), first) << "asked for a second time by the same loader";
}

// --- folding ---

/// Every total of a list that is one number, and how much a histogram holds.
template <class List>
void add_numbers(std::vector<double>& sums, const List& totals) {
  std::size_t at = 0;
  const auto add = [&](double number) {
    sums.resize(std::max(sums.size(), at + 1));
    sums[at++] += number;
  };
  totals_of(Of<List>{}, [&]<class Total>(Total List::* total, auto...) {
    if constexpr (std::is_arithmetic_v<Total>) {
      add(static_cast<double>(totals.*total));
    } else if constexpr (std::is_same_v<Total, HistogramFigures>) {
      add((totals.*total).sum_ns);
    } else if constexpr (std::is_same_v<Total, TransferFigures>) {
      add((totals.*total).copies);
    }
  });
}

/// Totals of a run as reports see them.
struct Totals {
  std::vector<double> of_cells, of_workers;
  std::map<std::uint32_t, double> busy_ns, items, loop_items, service_count, copied_bytes;
  double states_ns = 0;
  std::map<std::uint32_t, double> edges;
  std::map<std::pair<std::uint32_t, std::int64_t>, double> windows;

  static Totals of(Segment& segment) {
    SegmentImage image;
    image.read_memory(segment.data(), segment.size());
    const SegmentFigures figures = SegmentFigures::of(image, 0);
    const std::int64_t width = common_window_ns(image, 0);
    Totals totals;
    for (const WorkerFigures& worker : figures.workers) {
      add_numbers<WorkerTotals>(totals.of_workers, worker);
      for (std::size_t state = 1; state < worker.state_ns.size(); ++state)
        totals.states_ns += worker.state_ns[state];
      for (const EdgeFigures& edge : worker.edges)
        totals.edges[edge.queue] += static_cast<double>(edge.items);
    }
    for (const CellFigures& cell : figures.cells) {
      add_numbers<CellTotals>(totals.of_cells, cell);
      totals.busy_ns[cell.op] += cell.busy_ns;
      totals.items[cell.op] += static_cast<double>(cell.items);
      totals.loop_items[cell.op] += cell.loop_items;
      totals.service_count[cell.op] += static_cast<double>(cell.service.count());
      totals.copied_bytes[cell.op] += cell.transfer.bytes;
      for (std::int64_t boundary = width; boundary <= figures.loop_ns; boundary += width) {
        totals.windows[{cell.op, boundary}] += busy_at(image, cell, figures.workers[cell.worker], boundary);
      }
    }
    return totals;
  }
};

/// Hundreds of short-lived workers on a clock of the test's own, each with up to three operators and a queue.
class ManyWorkers {
 public:
  explicit ManyWorkers(Bench& bench, std::uint64_t seed) : bench_(bench), random_(seed) {
    now_ = bench.segment->header().opened_ns;
    for (const char* name : {"read", "decode", "resize"})
      operators_.push_back(bench.registry.operator_id({.name = name}));
    for (const char* name : {"paths", "images"}) bench.registry.queue_id(name, 8);
  }

  void begin_loop() { clock().resume(now_ += 1'000'000); }

  /// One worker's life. `windows`: how long it lives.
  void live(int windows) {
    const std::int64_t until = now_ + windows * metrics::kFirstWindowNs;
    metrics::WorkerCell* cell = bench_.registry.claim_worker(now_);
    ASSERT_NE(cell, nullptr);
    metrics::WorkerProbe probe;
    probe.bind(cell, bench_.segment->cells(), &clock(), now_);
    std::vector<metrics::OperatorCell*> cells;
    for (const int op : operators_) {
      if (random_() % 3 != 0) cells.push_back(bench_.registry.claim_cell(*cell, op, Place::worker, false));
    }
    while (now_ < until && !cells.empty()) {
      probe.block(WorkerState::blocked_in, now_ += static_cast<std::int64_t>(random_() % 30'000'000));
      probe.unblock(now_ += static_cast<std::int64_t>(random_() % 30'000'000));
      probe.edge(0, false, true);
      for (metrics::OperatorCell* one : cells) {
        probe.enter(*one, now_);
        probe.transferred(*one, {.copies = 1, .bytes = static_cast<std::int64_t>(random_() % 1000)}, now_);
        probe.leave(now_ += static_cast<std::int64_t>(random_() % 50'000'000), random_() % 10 == 0);
      }
      probe.edge(1, true, true);
    }
    probe.finish(now_);
    // So that the figures' own "now" (the last anchor or event of a run whose owner is alive) is this
    // clock's.
    bench_.segment->header().anchors.add({now_, now_});
  }

 private:
  metrics::LoopClock& clock() { return bench_.segment->header().loop_clock; }

  Bench& bench_;
  std::mt19937_64 random_;
  std::int64_t now_;
  std::vector<int> operators_;
};

TEST(Registry, FoldingChangesNoTotalAndNoWindow) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Bench bench;
    ManyWorkers workers(bench, seed);
    workers.begin_loop();
    int folded = 0;
    // Long enough that the windows double between one fold and the next.
    for (int round = 0; round < 8; ++round) {
      for (int i = 0; i < 40; ++i) workers.live(static_cast<int>(seed) + 1);
      const Totals before = Totals::of(*bench.segment);
      folded += bench.registry.fold_finished_workers();
      const Totals after = Totals::of(*bench.segment);
      EXPECT_EQ(before.of_cells, after.of_cells);
      EXPECT_EQ(before.of_workers, after.of_workers);
      EXPECT_EQ(before.busy_ns, after.busy_ns);
      EXPECT_EQ(before.items, after.items);
      EXPECT_EQ(before.loop_items, after.loop_items);
      EXPECT_EQ(before.service_count, after.service_count);
      EXPECT_EQ(before.copied_bytes, after.copied_bytes);
      EXPECT_EQ(before.edges, after.edges);
      EXPECT_DOUBLE_EQ(before.states_ns, after.states_ns);
      EXPECT_EQ(before.windows, after.windows);
    }
    EXPECT_EQ(folded, 320);
    EXPECT_EQ(bench.segment->header().retired_workers.load(), 320U);
  }
}

TEST(Registry, FoldingLeavesRoomForHundredsMore) {
  Bench bench;
  ManyWorkers workers(bench, 1);
  workers.begin_loop();
  for (int i = 0; i < 600; ++i) {
    if (bench.registry.is_crowded()) bench.registry.fold_finished_workers();
    workers.live(1);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(bench.segment->header().dropped.workers.load(), 0U);
  EXPECT_EQ(bench.segment->header().dropped.cells.load(), 0U);
}

TEST(Registry, FoldsStartUpAwayOnceTheLoopHasBegun) {
  for (const bool fold_before : {false, true}) {
    Bench bench;
    ManyWorkers workers(bench, 2);
    for (int i = 0; i < 20; ++i) workers.live(3);  // a warm-up
    const Totals start_up = Totals::of(*bench.segment);
    if (fold_before) bench.registry.fold_finished_workers();
    workers.begin_loop();
    const Totals begun = Totals::of(*bench.segment);
    EXPECT_EQ(begun.items, start_up.items);
    for (const auto& [op, ns] : begun.busy_ns) EXPECT_EQ(ns, 0) << "operator " << op;
    for (int i = 0; i < 5; ++i) workers.live(2);
    const Totals before = Totals::of(*bench.segment);
    bench.registry.fold_finished_workers();
    const Totals after = Totals::of(*bench.segment);
    EXPECT_EQ(before.busy_ns, after.busy_ns);
    EXPECT_EQ(before.items, after.items);
    EXPECT_EQ(before.loop_items, after.loop_items);
    EXPECT_EQ(before.windows, after.windows);
    EXPECT_EQ(before.service_count, after.service_count);
    EXPECT_EQ(before.copied_bytes, after.copied_bytes);
  }
}

/// A process that was killed never said what it did last: that is counted to its last sign of life, folded or
/// not.
TEST(Registry, FoldsAWorkerThatWasKilled) {
  const ScratchFolder folder;
  Bench bench;
  bench.segment = Segment::create({folder / "a.hrseg", ""}, 0);
  Registry registry(*bench.segment);
  const std::int64_t began = metrics::Clock::now_ns();
  bench.segment->header().loop_clock.resume(began);
  const int op = registry.operator_id({.name = "decode"});
  const pid_t child = in_child([&] {
    metrics::WorkerCell* worker = registry.claim_worker(began);
    metrics::OperatorCell* cell = registry.claim_cell(*worker, op, Place::worker, false);
    metrics::WorkerProbe probe;
    probe.bind(worker, bench.segment->cells(), &bench.segment->header().loop_clock, began);
    probe.enter(*cell, began + 1000);
    probe.leave(began + 5000, false);
    probe.enter(*cell, began + 6000);
    worker->last_alive_ns.store(began + 90'000);  // as the run's owner noted
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(wait_for(child)));
  const Totals before = Totals::of(*bench.segment);
  EXPECT_EQ(before.busy_ns.at(0), 4000 + 84'000);
  EXPECT_EQ(before.items.at(0), 1);
  EXPECT_EQ(registry.fold_finished_workers(), 1);
  const Totals after = Totals::of(*bench.segment);
  EXPECT_EQ(after.busy_ns, before.busy_ns);
  EXPECT_EQ(after.items, before.items);
}

}  // namespace
}  // namespace headrace::profile
