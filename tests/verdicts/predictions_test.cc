// What the advice promises, against the same pipeline simulated with the advice applied.
#include <gtest/gtest.h>

#include "headrace/analysis/verdict/diagnose.h"
#include "support/simulation/labelled_lines.h"

namespace headrace::analysis {
namespace {

using simulation::Labelled;
using simulation::Line;
using simulation::Random;

/// The line with its first advice (all rows of one prediction for capacities) applied; false if there is
/// none.
bool apply(const Diagnosis& diagnosis, Line& line) {
  bool applied = false;
  if (diagnosis.advice.empty() || !diagnosis.advice.front().predicted_step_s) return false;
  const std::string& first = diagnosis.advice.front().parameter;
  for (simulation::Stage& stage : line.stages) {
    if (first == stage.name + ".workers") {
      stage.workers = static_cast<int>(std::get<std::int64_t>(diagnosis.advice.front().to));
      applied = true;
    }
    for (const Advice& advice : diagnosis.advice) {
      if (!first.ends_with(".capacity") || advice.parameter != stage.name + "_out.capacity") continue;
      stage.capacity = static_cast<int>(std::get<std::int64_t>(advice.to));
      applied = true;
    }
  }
  return applied;
}

class SimulatedAdvice : public testing::TestWithParam<simulation::LineClass> {};

TEST_P(SimulatedAdvice, HoldWhereTheyCanBeTried) {
  int tried = 0;
  int inside = 0;
  double error = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed + 300);
    Labelled labelled = GetParam().draw(random);
    const profile::Profile profile = simulation::simulate(labelled.line, seed);
    const Diagnosis diagnosis = diagnose(profile);
    Line changed = labelled.line;
    if (!apply(diagnosis, changed)) continue;
    const Advice& advice = diagnosis.advice.front();
    const double measured_s = simulation::simulate(changed, seed + 40).sink.step_s;
    EXPECT_LE(*advice.low, *advice.predicted_step_s);
    EXPECT_GE(*advice.high, *advice.predicted_step_s);
    ++tried;
    inside += measured_s >= *advice.low && measured_s <= *advice.high ? 1 : 0;
    error += *advice.predicted_step_s / measured_s - 1;
    std::printf("%s %s %s -> %s: %.2f now, predicted %.2f [%.2f, %.2f], measured %.2f ms, error %+.0f %%\n",
                GetParam().name, advice.parameter.c_str(), profile::as_written(advice.from).c_str(),
                profile::as_written(advice.to).c_str(), 1e3 * profile.sink.step_s,
                1e3 * *advice.predicted_step_s, 1e3 * *advice.low, 1e3 * *advice.high, 1e3 * measured_s,
                100 * (*advice.predicted_step_s / measured_s - 1));
    EXPECT_LE(measured_s, 1.05 * profile.sink.step_s) << "harmful: seed " << seed;
  }
  ASSERT_GT(tried, 0);
  EXPECT_GE(inside, tried * 3 / 4);
  EXPECT_NEAR(error / tried, 0, 0.15);
}

/// Those whose cure is a number of workers or a capacity.
std::vector<simulation::LineClass> classes_with_a_number() {
  const std::set<std::string> names{
      "slow_stage", "slow_stage_of_several", "slow_cpu_stage",    "slow_before_batch",
      "prefilled",  "python_processes",      "sleeping_beside_c", "varying",
      "rare_slow",  "equally_slow",          "at_times",          "free_sink",
      "half_cpu",   "rare_slow_alone"};
  std::vector<simulation::LineClass> classes = simulation::line_classes();
  std::erase_if(classes, [&](const simulation::LineClass& each) { return !names.contains(each.name); });
  return classes;
}

INSTANTIATE_TEST_SUITE_P(Classes, SimulatedAdvice, testing::ValuesIn(classes_with_a_number()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headrace::analysis
