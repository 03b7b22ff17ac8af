#include "headrace/analysis/comparison/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "headrace/report/comparison.h"
#include "support/simulation/line.h"

namespace headrace::analysis {
namespace {

using profile::Profile;

/// A source and a decoder that sleep, a loop that takes less than they do.
Profile run_of(std::uint64_t seed, double decode_s = 0.02, int steps = 300) {
  const simulation::Line line{
      .stages = {{.name = "read", .sleep_s = 2e-3, .factor = simulation::jitter(0.3)},
                 {.name = "decode", .workers = 2, .sleep_s = decode_s, .factor = simulation::jitter(0.3)}},
      .compute_s = 6e-3,
      .steps = steps};
  return simulation::simulate(line, seed);
}

Comparison compare_two(const Profile& a, const Profile& b) {
  return compare(std::span(&a, 1), std::span(&b, 1));
}

TEST(Comparison, EqualRunsRaiseNoAlarm) {
  constexpr std::uint64_t kPairs = 500;
  std::vector<Profile> runs;
  for (std::uint64_t seed = 0; seed < 2 * kPairs; ++seed) runs.push_back(run_of(seed + 1));
  int alarms = 0;
  for (std::size_t pair = 0; pair < kPairs; ++pair)
    alarms += compare_two(runs[2 * pair], runs[2 * pair + 1]).step.changed ? 1 : 0;
  EXPECT_LE(alarms, 5);
}

TEST(Comparison, FindsATenPercentSlowerOperator) {
  int found = 0;
  int named = 0;
  constexpr int kPairs = 100;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto seed = static_cast<std::uint64_t>(pair) * 2 + 5000;
    const Comparison comparison = compare_two(run_of(seed), run_of(seed + 1, 0.022));
    found += comparison.step.changed && comparison.step.ratio > 1 ? 1 : 0;
    const ComparedOperator& first = comparison.operators.front();
    named += first.name == "decode" && first.demand && first.demand->changed ? 1 : 0;
  }
  EXPECT_GE(found, 95);
  EXPECT_GE(named, 95);
}

TEST(Comparison, SaysWhereTheDifferenceIs) {
  const Comparison comparison = compare_two(run_of(1), run_of(2, 0.026));
  EXPECT_NEAR(comparison.step.ratio, 1.3, 0.1);
  EXPECT_LT(comparison.step.low, comparison.step.ratio);
  EXPECT_GT(comparison.step.high, comparison.step.ratio);
  EXPECT_TRUE(comparison.wait.changed);
  EXPECT_FALSE(comparison.compute.changed);
  EXPECT_EQ(comparison.verdict_a.op, "decode");
  const std::string text = report::to_text(comparison);
  EXPECT_NE(text.find("The difference is in the wait for input"), std::string::npos) << text;
  EXPECT_NE(text.find("Operators: decode takes "), std::string::npos) << text;
}

TEST(Comparison, CountsTheWorkOfWindowsInWhichNoStepEnded) {
  // Steps of 0.4 s in windows of 0.2 s: only every other window has one.
  Profile slow = run_of(1);
  slow.windows.clear();
  for (int i = 0; i < 80; ++i) {
    profile::Window window;
    window.start_s = 0.2 * i;
    window.end_s = 0.2 * (i + 1);
    window.steps = static_cast<std::uint64_t>(i % 2);
    window.wait_s = 0.2;
    for (std::size_t op = 0; op < slow.operators.size(); ++op)
      window.operators.push_back({1.0, i % 2 == 0 ? 0 : 0.2, 1});
    slow.windows.push_back(std::move(window));
  }
  const Comparison comparison = compare_two(slow, slow);
  for (const ComparedOperator& op : comparison.operators) EXPECT_NEAR(op.demand->a, 0.4, 1e-9) << op.name;
}

TEST(Comparison, MoreWorkersAreNotFasterOnes) {
  Profile a = run_of(1);
  Profile b = run_of(2);
  for (Profile* each : {&a, &b}) each->windows.clear();
  const auto decode = [](Profile& profile) -> profile::OperatorProfile& {
    return *std::find_if(profile.operators.begin(), profile.operators.end(),
                         [](const profile::OperatorProfile& op) { return op.name == "decode"; });
  };
  b = a;
  decode(b).workers = 2 * decode(a).workers;
  for (Profile* each : {&a, &b}) {
    for (int i = 0; i < 40; ++i) {
      profile::Window window;
      window.start_s = 0.2 * i;
      window.end_s = 0.2 * (i + 1);
      window.steps = each == &a ? 10 : 20;
      window.compute_s = 0.2;
      window.operators.assign(each->operators.size(), {1.0, 0, 10});
      each->windows.push_back(std::move(window));
    }
  }
  const std::string text = report::to_text(compare_two(a, b));
  EXPECT_NE(text.find("decode has 4 workers instead of 2, each as fast as before"), std::string::npos)
      << text;
}

TEST(Comparison, SaysThatTwoProgramsAreCompared) {
  Profile other = run_of(2);
  for (profile::OperatorProfile& op : other.operators) op.name += " of another program";
  const Comparison comparison = compare_two(run_of(1), other);
  ASSERT_FALSE(comparison.notes.empty());
  EXPECT_NE(comparison.notes.back().find("different programs"), std::string::npos);
}

TEST(Comparison, ListsWhatIsSetDifferently) {
  Profile a = run_of(1);
  Profile b = run_of(2);
  a.settings = {{"num_workers", "2"}, {"pin_memory", "True"}};
  b.settings = {{"num_workers", "4"}, {"pin_memory", "True"}};
  const Comparison comparison = compare_two(a, b);
  const auto found = std::find_if(comparison.settings.begin(), comparison.settings.end(),
                                  [](const ComparedSetting& each) { return each.name == "num_workers"; });
  ASSERT_NE(found, comparison.settings.end());
  EXPECT_EQ(found->a, "2");
  EXPECT_EQ(found->b, "4");
  EXPECT_TRUE(std::none_of(comparison.settings.begin(), comparison.settings.end(),
                           [](const ComparedSetting& each) { return each.name == "pin_memory"; }));
}

TEST(Comparison, OperatorsOfOneSideAreNewOrGone) {
  Profile b = run_of(2);
  b.operators[1].name = "decode_fast";
  const Comparison comparison = compare_two(run_of(1), b);
  const std::string text = report::to_text(comparison);
  EXPECT_NE(text.find("decode is gone"), std::string::npos) << text;
  EXPECT_NE(text.find("decode_fast is new"), std::string::npos) << text;
}

TEST(Comparison, SeveralRunsTellMore) {
  std::vector<Profile> a;
  std::vector<Profile> b;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    a.push_back(run_of(seed));
    b.push_back(run_of(seed + 10, 0.021));
  }
  const Comparison many = compare(a, b);
  const Comparison one = compare_two(a.front(), b.front());
  EXPECT_EQ(many.runs_a, 4U);
  EXPECT_LT(many.step.high / many.step.low, one.step.high / one.step.low);
  EXPECT_TRUE(many.step.changed);
}

TEST(Comparison, TooFewStepsAreNotCompared) {
  Profile shortest = run_of(1);
  shortest.windows.clear();
  shortest.sink.sequence.resize(3);
  const Comparison comparison = compare_two(run_of(2), shortest);
  EXPECT_FALSE(comparison.step.changed);
  EXPECT_NE(comparison.reason.find("too few steps"), std::string::npos);
  EXPECT_EQ(report::headline_of(comparison), comparison.reason);
  // An interval without an end is null, which every reader of JSON takes.
  EXPECT_NE(report::to_json(comparison, -1).find("\"high\":null"), std::string::npos);
}

TEST(Comparison, EmptyProfilesAreSaidToBe) {
  const Comparison comparison = compare_two(Profile{}, run_of(1));
  EXPECT_EQ(comparison.reason, "no complete step of A was recorded");
  EXPECT_FALSE(report::page_json(comparison).empty());
}

}  // namespace
}  // namespace headrace::analysis
