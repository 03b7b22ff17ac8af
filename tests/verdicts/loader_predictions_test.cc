// What a change to a DataLoader is predicted to buy, against the same loader run with it in virtual time by
// other code.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/analysis/simulate/simulator.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "support/simulation/labelled_loaders.h"
#include "verdicts/seed.h"

namespace headrace::analysis {
namespace {

using simulation::DataLoader;
using simulation::LabelledLoader;
using simulation::LoaderClass;
using simulation::Random;

/// The loader with a change of a parameter; false if it is none of the simulated loader's.
bool set(DataLoader& loader, const std::string& parameter, const std::string& to) {
  if (parameter == "num_workers") {
    loader.num_workers = std::stoi(to);
  } else if (parameter == "prefetch_factor") {
    loader.prefetch_factor = std::stoi(to);
  } else if (parameter == "in_order") {
    loader.in_order = to != "False";
  } else {
    return false;
  }
  return true;
}

double measured_s(DataLoader loader, std::uint64_t seed) {
  loader.steps = std::max(loader.steps, 300);
  return simulation::simulate(loader, seed).sink.step_s;
}

class LoaderAdvice : public testing::TestWithParam<LoaderClass> {};

TEST_P(LoaderAdvice, HoldsWhereItCanBeTried) {
  int tried = 0;
  int predicted = 0;
  int inside = 0;
  for (std::uint64_t draw = 0; draw < 4; ++draw) {
    const std::uint64_t seed = first_seed() + 300 + draw;
    Random random(seed);
    const LabelledLoader labelled = GetParam().draw(random);
    const profile::Profile profile = simulation::simulate(labelled.loader, seed);
    const Diagnosis diagnosis = diagnose(profile);
    for (const Advice& advice : diagnosis.advice) {
      DataLoader changed = labelled.loader;
      if (!set(changed, advice.parameter, profile::as_written(advice.to))) continue;
      const double then_s = measured_s(changed, seed + 40);
      EXPECT_LE(then_s, 1.05 * profile.sink.step_s) << "harmful: seed " << seed;
      ++tried;
      if (!advice.predicted_step_s) continue;
      ++predicted;
      inside += then_s >= *advice.low && then_s <= *advice.high ? 1 : 0;
      std::printf("%s %s %s -> %s: %.2f now, predicted %.2f [%.2f, %.2f], measured %.2f ms, error %+.0f %%\n",
                  GetParam().name, advice.parameter.c_str(), profile::as_written(advice.from).c_str(),
                  profile::as_written(advice.to).c_str(), 1e3 * profile.sink.step_s,
                  1e3 * *advice.predicted_step_s, 1e3 * *advice.low, 1e3 * *advice.high, 1e3 * then_s,
                  100 * (*advice.predicted_step_s / then_s - 1));
    }
  }
  ASSERT_GT(tried, 0);
  EXPECT_GE(inside, predicted * 8 / 10);
}

std::vector<LoaderClass> loaders_with_a_number() {
  const std::set<std::string> names{"without_workers",
                                    "one_busy_worker",
                                    "few_sleeping_workers",
                                    "slow_collate",
                                    "slow_transform",
                                    "saturated",
                                    "tiny",
                                    "rare_slow",
                                    "pure_python",
                                    "varying"};
  std::vector<LoaderClass> classes = simulation::loader_classes();
  std::erase_if(classes, [&](const LoaderClass& each) { return !names.contains(each.name); });
  return classes;
}

INSTANTIATE_TEST_SUITE_P(Classes, LoaderAdvice, testing::ValuesIn(loaders_with_a_number()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headrace::analysis
