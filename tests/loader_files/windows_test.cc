// A folder's run over time: its windows, and verdicts that differ between parts of the run.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "headrace/analysis/second_opinions/profile_of_folder.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/loader_files/profile_of.h"
#include "headrace/profile/profile_json.h"
#include "support/profiler_folder.h"

namespace headrace::analysis {
namespace {

using test::ProfilerFolderWriter;
using test::slow_map;
using test::WrittenRun;

constexpr std::size_t kHalf = 60;

profile::Profile profile_of_run(const WrittenRun& run, const std::string& name) {
  const ProfilerFolderWriter folder(name);
  folder.write_run(run);
  return profile::profile_from_json(profile::profile_to_json(profile_of_folder(folder.path(), 0)));
}

std::vector<int> halves(int first, int second) {
  std::vector<int> levels(kHalf, first);
  levels.insert(levels.end(), kHalf, second);
  return levels;
}

/// 3 s in which every queue is full, then 3 s in which the map is too slow.
WrittenRun healthy_then_starved() {
  WrittenRun run = slow_map();
  run.operators[0].levels = halves(16, 0);
  run.operators[1].levels = halves(16, 0);
  run.operators[2].levels = halves(16, 16);
  run.waits_ms.assign(300, 0);
  return run;
}

TEST(FolderWindows, FiguresOfEachWindow) {
  const profile::Profile profile = profile_of_run(healthy_then_starved(), "windows");
  ASSERT_EQ(profile.windows.size(), 60U) << "0.1 s each, up to the last sample";
  const profile::Window& calm = profile.windows[10];
  EXPECT_NEAR(calm.start_s, 1.0, 1e-9);
  EXPECT_NEAR(static_cast<double>(calm.steps), 10, 1);
  EXPECT_NEAR(calm.wait_s, 0, 1e-9);
  EXPECT_NEAR(calm.compute_s, 0.1, 1e-9);
  EXPECT_EQ(calm.operators[1].busy_share, 0);
  EXPECT_FALSE(calm.operators[1].items);
  EXPECT_EQ(calm.queues[2].full_share, 1);
  const profile::Window& starved = profile.windows[50];
  EXPECT_EQ(starved.steps + profile.windows[51].steps, 5U);
  EXPECT_NEAR(starved.starved_s + profile.windows[51].starved_s, 0.15, 0.02);
  EXPECT_EQ(starved.operators[1].busy_share, 1);
  EXPECT_EQ(starved.queues[2].empty_share, 1);
  EXPECT_EQ(starved.queues[0].mean, 16);
  double lasted_s = 0;
  for (const profile::Window& window : profile.windows) lasted_s += window.wait_s + window.compute_s;
  EXPECT_NEAR(lasted_s, profile.windows.back().end_s, 1e-6) << "every moment is in one window";
}

TEST(FolderWindows, WithoutMomentsOfTheSamplesThereAreNone) {
  const ProfilerFolderWriter folder("no-moments");
  folder.write_pipeline(healthy_then_starved());
  folder.write_iterator(healthy_then_starved());
  const profile::Profile profile = profile_of_folder(folder.path(), 0);
  EXPECT_GT(profile.sink.steps, 8U);
  EXPECT_TRUE(profile.windows.empty());
}

TEST(FolderWindows, ARunThatStarvesInItsSecondHalf) {
  const Diagnosis diagnosis = diagnose(profile_of_run(healthy_then_starved(), "second-half"));
  EXPECT_EQ(diagnosis.kind, VerdictKind::intermittent);
  EXPECT_EQ(diagnosis.op, "MapOp_1");
  ASSERT_EQ(diagnosis.windows.size(), 2U);
  EXPECT_EQ(diagnosis.windows[0].kind, VerdictKind::not_input_bound);
  EXPECT_NEAR(diagnosis.windows[0].end_s, 3, 0.2);
  EXPECT_EQ(diagnosis.windows[1].kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.windows[1].op, "MapOp_1");
}

TEST(FolderWindows, ARunThatStarvesThroughoutIsOneStretch) {
  const Diagnosis diagnosis = diagnose(profile_of_run(slow_map(), "throughout"));
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_TRUE(diagnosis.windows.empty());
}

TEST(FolderWindows, TwoOperatorsInTurn) {
  WrittenRun run = slow_map();
  run.operators[0].levels = halves(0, 0);
  run.operators[1].levels = halves(0, 0);
  run.operators[2].levels = halves(16, 0);
  const Diagnosis diagnosis = diagnose(profile_of_run(run, "in-turn"));
  EXPECT_EQ(diagnosis.cause, Cause::alternating);
  ASSERT_EQ(diagnosis.windows.size(), 2U);
  EXPECT_EQ(diagnosis.windows[0].op, "MapOp_1");
  EXPECT_EQ(diagnosis.windows[1].op, "GeneratorOp_2");
}

/// Generator and map of the same speed, whose times vary, in front of a quick loop.
WrittenRun equal_operators(unsigned seed) {
  constexpr int kSamples = 400;
  constexpr int kTick_ms = 50;
  std::mt19937 random(seed);
  const auto service_ms = [&] {
    return 1 + static_cast<int>(-20 * std::log(1 - static_cast<double>(random()) / 4294967296.0));
  };
  WrittenRun run = slow_map();
  for (test::WrittenOperator& op : run.operators) op.levels.clear();
  run.step_ms = 5;
  run.wait_ms = 0;
  int made = 0;
  int mapped = 0;
  int generating_ms = service_ms();
  int mapping_ms = 0;
  int computing_ms = 0;
  int wait_ms = 0;
  for (int now_ms = 0; now_ms < kSamples * kTick_ms; ++now_ms) {
    if (generating_ms > 0 && --generating_ms == 0) ++made;
    if (generating_ms == 0 && made < 16) generating_ms = service_ms();
    if (mapping_ms > 0 && --mapping_ms == 0) ++mapped;
    if (mapping_ms == 0 && made > 0 && mapped < 16) {
      --made;
      mapping_ms = service_ms();
    }
    if (computing_ms > 0) {
      --computing_ms;
    } else if (mapped > 0) {
      --mapped;
      run.waits_ms.push_back(wait_ms);
      computing_ms = 5;
      wait_ms = 0;
    } else {
      ++wait_ms;
    }
    if (now_ms % kTick_ms != 0) continue;
    run.operators[0].levels.push_back(0);
    run.operators[1].levels.push_back(mapped);
    run.operators[2].levels.push_back(made);
  }
  return run;
}

TEST(FolderWindows, EqualOperatorsThatLeadByChanceDoNotLimitInTurn) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Diagnosis diagnosis = diagnose(profile_of_run(equal_operators(seed), "equal"));
    EXPECT_NE(diagnosis.kind, VerdictKind::not_input_bound) << seed;
    EXPECT_NE(diagnosis.cause, Cause::alternating) << seed;
    EXPECT_NE(diagnosis.kind, VerdictKind::intermittent) << seed;
  }
}

TEST(FolderWindows, AQueueThatRunsEmptyIsForeseen) {
  // The map never rests, and the loop lives on what the host queue held at the start.
  WrittenRun run = slow_map();
  run.step_ms = 40;
  run.wait_ms = 0;
  run.operators[0].levels.clear();
  for (int i = 0; i < 120; ++i) run.operators[0].levels.push_back(16 - i / 8);
  run.operators[1].levels.assign(120, 0);
  run.operators[2].levels.assign(120, 16);
  const Diagnosis diagnosis = diagnose(profile_of_run(run, "drains"));
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.op, "MapOp_1");
}

}  // namespace
}  // namespace headrace::analysis
