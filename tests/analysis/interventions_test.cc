// What is simulated without each operator, and the queues beside the verdict.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "headrace/analysis/diagnosis/interventions.h"

namespace headrace::analysis {
namespace {

using profile::Profile;

Profile of_operators(std::vector<double> demands_s) {
  Profile profile;
  for (double demand_s : demands_s) profile.operators.emplace_back().demand_s = demand_s;
  return profile;
}

/// A step of 10 ms, or what it would be without one operator.
class StepsWithout final : public Predictor {
 public:
  StepsWithout(const Profile& profile, std::vector<std::optional<double>> steps_s, bool known = true)
      : Predictor(profile), steps_s_(std::move(steps_s)), known_(known) {}

  Prediction predict(const std::vector<Change>& changes) const override {
    Prediction then;
    const std::optional<double> step_s =
        changes.empty() ? 0.010 : steps_s_[static_cast<std::size_t>(changes.front().index)];
    then.known = known_ && step_s.has_value();
    then.step_s = step_s.value_or(0);
    EXPECT_TRUE(changes.empty() || changes.front().factor == 0);
    return then;
  }

 private:
  std::vector<std::optional<double>> steps_s_;
  bool known_;
};

TEST(Interventions, GainsArePartsOfTheUnchangedStep) {
  const Profile profile = of_operators({0.01, 0.01, 0.01});
  const Interventions found = try_interventions(StepsWithout(profile, {0.009, 0.004, 0.00995}));
  EXPECT_DOUBLE_EQ(found.as_is_s, 0.010);
  EXPECT_NEAR(found.gain(0), 0.1, 1e-12);
  EXPECT_NEAR(found.gain(1), 0.6, 1e-12);
  EXPECT_TRUE(found.gains(1));
  EXPECT_FALSE(found.gains(2));  // simulations repeat themselves no better
  EXPECT_EQ(found.gain(-1), 0);
  EXPECT_EQ(found.gain(3), 0);
}

TEST(Interventions, WhatIsNotKnownGainsNothing) {
  const Profile profile = of_operators({0.01, 0});
  EXPECT_EQ(try_interventions(StepsWithout(profile, {std::nullopt, 0.001})).gain(0), 0);
  EXPECT_EQ(try_interventions(StepsWithout(profile, {0.001, 0.001})).gain(1), 0);  // it takes no time
  const Interventions unknown = try_interventions(StepsWithout(profile, {0.001, 0.001}, false));
  EXPECT_EQ(unknown.as_is_s, 0);
  EXPECT_FALSE(unknown.gains(0));
}

}  // namespace
}  // namespace headrace::analysis
