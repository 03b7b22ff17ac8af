#include "headrace/analysis/cluster/straggler_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "headrace/analysis/cluster/slowest_chance.h"
#include "headrace/analysis/read/exposed_wait.h"

namespace headrace::analysis::cluster {
namespace {

/// What a rank does in a step that begins at a time, in seconds.
struct Step {
  double wait_s;
  double cpu_s;
};
using Work = std::function<Step(int rank, double at_s)>;

/// Ranks whose clocks are the simulation's, read every `look_s`.
class LiveJob {
 public:
  LiveJob(int ranks, Work work, bool meet, unsigned seed, double look_s = 1)
      : totals_(static_cast<std::size_t>(ranks)),
        at_s_(static_cast<std::size_t>(ranks), 0.0),
        work_(std::move(work)),
        meet_(meet),
        random_(seed),
        look_s_(look_s) {
    for (int rank = 0; rank < ranks; ++rank) totals_[static_cast<std::size_t>(rank)].rank = rank;
  }

  /// Calls `see` with the time and what is said at each look.
  template <class See>
  void run(double until_s, See&& see) {
    std::uniform_real_distribution<double> jitter(0, 0.3);
    for (double look_s = 0.5; look_s < until_s; look_s += look_s_ + jitter(random_)) {
      while (next() < look_s) step();
      watch_.look(100 + look_s, totals_);
      see(look_s, watch_.straggler());
    }
  }

 private:
  double next() const { return *std::min_element(at_s_.begin(), at_s_.end()); }

  void step() {
    if (meet_) {
      std::vector<Step> steps;
      double end_s = 0;
      for (std::size_t rank = 0; rank < totals_.size(); ++rank) {
        steps.push_back(work_(static_cast<int>(rank), at_s_[rank]));
        end_s = std::max(end_s, at_s_[rank] + steps.back().wait_s + steps.back().cpu_s);
      }
      for (std::size_t rank = 0; rank < totals_.size(); ++rank) add(rank, steps[rank], end_s);
      return;
    }
    const auto rank = static_cast<std::size_t>(std::min_element(at_s_.begin(), at_s_.end()) - at_s_.begin());
    const Step one = work_(static_cast<int>(rank), at_s_[rank]);
    add(rank, one, at_s_[rank] + one.wait_s + one.cpu_s);
  }

  void add(std::size_t rank, Step step, double end_s) {
    profile::LoopTotals& totals = totals_[rank];
    const double step_s = end_s - at_s_[rank];
    ++totals.steps;
    totals.wait_s += step.wait_s;
    totals.compute_s += step_s - step.wait_s;
    totals.sampled_compute_s += step_s - step.wait_s;
    totals.sampled_cpu_s += step.cpu_s;
    ++totals.waits.count;
    totals.waits.sum_s += step.wait_s;
    ++totals.step_times.count;
    totals.step_times.sum_s += step_s;
    at_s_[rank] = totals.at_s = end_s;
  }

  std::vector<profile::LoopTotals> totals_;
  std::vector<double> at_s_;
  Work work_;
  bool meet_;
  std::mt19937_64 random_;
  double look_s_;
  StragglerWatch watch_;
};

/// 20 % noise from step to step, a lasting difference of 1 % between ranks, and slower spells that all share.
class Noise {
 public:
  Noise(int ranks, unsigned seed) : random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) bias_.push_back(1 + 0.005 * normal_(random_));
  }
  double operator()(int rank, double at_s) {
    const double spell = std::fmod(at_s, 47) < 5 ? 1.4 : 1;
    return spell * bias_[static_cast<std::size_t>(rank)] * std::exp(0.2 * normal_(random_));
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> bias_;
};

struct Kind {
  int ranks;
  double step_s;
  bool meet;
  bool by_input;
};

/// When the slow rank is first named, after it slowed down; -1: never. `wrong`: another rank was called chronic.
double named_after(const Kind& kind, unsigned seed, double slower, bool& wrong, double until_s = 120) {
  Noise noise(kind.ranks, seed);
  const int slow = static_cast<int>(seed) % kind.ranks;
  const double began_s = 60;
  LiveJob job(
      kind.ranks,
      [&](int rank, double at_s) -> Step {
        const double usual_s = kind.step_s * noise(rank, at_s);
        const double more_s = rank == slow && at_s >= began_s ? slower * kind.step_s : 0;
        if (kind.by_input) return {0.1 * usual_s + more_s, 0.9 * usual_s};
        return {0.02 * usual_s, 0.98 * usual_s + more_s};
      },
      kind.meet, seed);
  double found_s = -1;
  job.run(until_s, [&](double at_s, const std::optional<Straggler>& said) {
    if (!said || !said->chronic) return;
    if (said->rank != slow || at_s < began_s) wrong = true;
    if (found_s < 0) found_s = at_s - began_s;
  });
  return found_s;
}

const std::vector<Kind> kKinds = {
    {2, 0.05, true, true},  {4, 0.05, true, true},  {8, 0.3, true, true},
    {64, 0.1, true, true},  {4, 1.5, true, true},   {4, 0.05, true, false},
    {16, 0.2, true, false}, {4, 0.01, false, true}, {8, 0.1, false, false},
};

TEST(StragglerWatch, ARankThatSlowsDownIsNamedWithinThirtySeconds) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      bool wrong = false;
      const double after_s = named_after(kKinds[kind], seed, 0.3, wrong);
      EXPECT_FALSE(wrong) << "kind " << kind << " seed " << seed;
      EXPECT_GT(after_s, 0) << "kind " << kind << " seed " << seed;
      EXPECT_LE(after_s, 30) << "kind " << kind << " seed " << seed;
    }
  }
}

TEST(StragglerWatch, HealthyRanksAreNeverNamed) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    for (unsigned seed = 100; seed < 110; ++seed) {
      Noise noise(kKinds[kind].ranks, seed);
      LiveJob job(
          kKinds[kind].ranks,
          [&](int rank, double at_s) -> Step {
            const double usual_s = kKinds[kind].step_s * noise(rank, at_s);
            return {0.1 * usual_s, 0.9 * usual_s};
          },
          kKinds[kind].meet, seed);
      job.run(300, [&](double at_s, const std::optional<Straggler>& said) {
        EXPECT_FALSE(said && said->chronic) << "kind " << kind << " seed " << seed << " at " << at_s;
      });
    }
  }
}

TEST(StragglerWatch, APauseIsAOneOff) {
  for (const Kind& kind : kKinds) {
    if (!kind.meet) continue;  // ranks that do not meet are not held up
    for (unsigned seed = 0; seed < 10; ++seed) {
      Noise noise(kind.ranks, seed);
      bool paused = false;
      LiveJob job(
          kind.ranks,
          [&](int rank, double at_s) -> Step {
            const double usual_s = kind.step_s * noise(rank, at_s);
            const bool pauses = rank == 1 && at_s > 60 && !std::exchange(paused, paused || at_s > 60);
            return {0.1 * usual_s + (pauses ? 4 : 0), 0.9 * usual_s};
          },
          true, seed);
      bool was_said = false;
      job.run(120, [&](double, const std::optional<Straggler>& said) {
        if (!said) return;
        EXPECT_FALSE(said->chronic) << kind.ranks << " ranks, seed " << seed;
        EXPECT_EQ(said->rank, 1) << kind.ranks << " ranks, seed " << seed;
        was_said = true;
      });
      EXPECT_TRUE(was_said) << kind.ranks << " ranks, seed " << seed;
    }
  }
}

/// Steps of 0.1 s, and one of 4 s in which rank 1 waits for its input and the others for it. A look finds that wait
/// before its step is over.
TEST(StragglerWatch, APauseIsSeenWhereItsStepIsNotOver) {
  StragglerWatch watch;
  std::vector<profile::LoopTotals> ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks[static_cast<std::size_t>(rank)].rank = rank;
  const auto wait = [](profile::LoopTotals& one, std::uint64_t count, double each_s) {
    one.waits.count += count;
    one.waits.sum_s += static_cast<double>(count) * each_s;
  };
  const auto step = [](profile::LoopTotals& one, std::uint64_t count, double each_s) {
    one.step_times.count += count;
    one.step_times.sum_s += static_cast<double>(count) * each_s;
  };
  for (int second = 0; second < 30; ++second) {
    if (second > 15 && second < 20) continue;  // nobody has a step
    for (auto& one : ranks) {
      wait(one, 9, 0.01);
      wait(one, 1, second == 20 && one.rank == 1 ? 3.9 : 0.01);
      step(one, 9, 0.1);
      step(one, 1, second == 21 ? 4 : 0.1);
    }
    watch.look(1 + second, ranks);
    if (second < 21) continue;
    ASSERT_TRUE(watch.straggler()) << second;
    EXPECT_EQ(watch.straggler()->rank, 1);
    EXPECT_EQ(watch.straggler()->by, LateBy::input);
    EXPECT_FALSE(watch.straggler()->chronic);
  }
}

TEST(StragglerWatch, ARankThatIsGoneDoesNotHoldUpTheOthers) {
  StragglerWatch watch;
  std::vector<profile::LoopTotals> ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks[static_cast<std::size_t>(rank)].rank = rank;
  for (int second = 0; second < 150; ++second) {
    for (auto& one : ranks) {
      if (one.rank == 2 && second > 20) continue;  // silent: neither ended nor known to have died
      const double wait_s = one.rank == 1 && second > 25 ? 0.04 : 0.01;
      one.waits.count += 10;
      one.waits.sum_s += 10 * wait_s;
      one.step_times.count += 10;
      one.step_times.sum_s += 1;
    }
    watch.look(1 + second, ranks);
  }
  ASSERT_TRUE(watch.straggler());
  EXPECT_EQ(watch.straggler()->rank, 1);
}

TEST(StragglerWatch, LongStepsTakeLonger) {
  bool wrong = false;
  const double after_s = named_after({4, 4, true, true}, 7, 0.4, wrong, 400);
  EXPECT_FALSE(wrong);
  EXPECT_GT(after_s, 24);
}

TEST(SlowestChance, TheZIsThatOfTheExactBinomialTail) {
  EXPECT_EQ(slowest_z(3, 10, 1), 0);
  EXPECT_EQ(slowest_z(0, 0, 4), 0);
  EXPECT_NEAR(slowest_z(0, 10, 4), 0, 1e-9);
  // 10 of 10 of two: 2^-10, which a normal variable exceeds at 3.097.
  EXPECT_NEAR(slowest_z(10, 10, 2), 3.097, 0.001);
  // 1 of 12 of 1,000 ranks is no surprise: probability 0.0119. The normal approximation says 9.
  EXPECT_NEAR(slowest_z(1, 12, 1000), 2.26, 0.01);
  EXPECT_NEAR(chronic_z(2), 4.35, 0.05);
  EXPECT_GT(chronic_z(64), chronic_z(2));
}

profile::LoopTotals totals(double at_s, std::uint64_t steps, double wait_s, double compute_s) {
  profile::LoopTotals one;
  one.at_s = at_s;
  one.steps = steps;
  one.wait_s = wait_s;
  one.compute_s = compute_s;
  return one;
}

TEST(ExposedWait, IsTheShareOfTheTimeThatPassed) {
  const ExposedWait found = exposed_wait(totals(100, 50, 1, 4), totals(160, 650, 13, 34));
  EXPECT_DOUBLE_EQ(found.over_s, 60);
  EXPECT_DOUBLE_EQ(found.share, 0.2);  // the rest of the minute it evaluated
  EXPECT_EQ(exposed_wait(totals(1, 1, 1, 1), totals(1, 1, 1, 1)).over_s, 0);
}

TEST(ExposedWait, WhatTheDeviceHidesIsLeftOut) {
  profile::LoopTotals now = totals(60, 600, 18, 42);  // 30 ms wait and 70 ms compute a step
  now.device_steps = 100;
  now.device_host_s = 7;
  now.device_s = 9;  // 90 ms: the device works on for 20 ms of each wait
  EXPECT_NEAR(exposed_wait(totals(0, 0, 0, 0), now).share, 0.1, 1e-9);
  now.device_s = 20;  // the device is never idle
  EXPECT_NEAR(exposed_wait(totals(0, 0, 0, 0), now).share, 0, 1e-9);
}

}  // namespace
}  // namespace headrace::analysis::cluster
