// What is simulated without each operator, and the queues beside the verdict.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "headrace/analysis/verdict/interventions.h"

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
    const bool absent = changes.size() == 1 && changes.front().kind == Change::Kind::kService;
    std::optional<double> step_s = absent ? steps_s_[static_cast<std::size_t>(changes.front().index)] : 0.010;
    if (changes.size() > 1) step_s = 0.002;
    if (!changes.empty() && changes.front().kind == Change::Kind::kEven) step_s = 0.008;
    Prediction then;
    then.known = known_ && step_s.has_value();
    then.step_s = step_s.value_or(0);
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
  EXPECT_NEAR(found.gain_of_evenness(), 0.2, 1e-12);
  EXPECT_NEAR(found.gain_of_all(), 0.8, 1e-12);
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

/// More workers of a run of 10 ms.
class MoreOf final : public Predictor {
 public:
  MoreOf(const Profile& profile, double as_is_s, double without_lock_s, double with_cores_s)
      : Predictor(profile), as_is_s_(as_is_s), without_lock_s_(without_lock_s), with_cores_s_(with_cores_s) {}

  Prediction predict(const std::vector<Change>& changes) const override {
    Prediction then;
    then.known = true;
    EXPECT_EQ(changes.front().to, 8);
    then.step_s = changes.size() == 1                                  ? as_is_s_
                  : changes.back().kind == Change::Kind::kFreeThreaded ? without_lock_s_
                                                                       : with_cores_s_;
    return then;
  }

 private:
  double as_is_s_, without_lock_s_, with_cores_s_;
};

TEST(MoreWorkers, LackWhatTheyWouldGainWith) {
  Profile profile = of_operators({0.01});
  profile.operators[0].workers = 2;
  const Interventions run{.as_is_s = 0.010, .without_s = {0.004}};
  const auto more = [&](double as_is_s, double without_lock_s, double with_cores_s) {
    return try_more_workers(MoreOf(profile, as_is_s, without_lock_s, with_cores_s), run, 0);
  };
  EXPECT_FALSE(more(0.005, 0.004, 0.004).lack_the_lock());  // they help as it is
  EXPECT_FALSE(more(0.005, 0.004, 0.004).lack_cores());
  EXPECT_TRUE(more(0.011, 0.005, 0.010).lack_the_lock());
  EXPECT_FALSE(more(0.011, 0.005, 0.004).lack_the_lock());  // cores gain more
  EXPECT_TRUE(more(0.011, 0.005, 0.004).lack_cores());
  EXPECT_TRUE(more(0.0095, 0.009, 0.004).lack_cores());
  EXPECT_FALSE(more(0.0085, 0.009, 0.004).lack_cores());  // with more cores much more, but they help as it is
  EXPECT_FALSE(more(0.010, 0.0099, 0.0099).lack_cores());  // nothing gains
  EXPECT_FALSE(try_more_workers(MoreOf(profile, 1, 1, 1), Interventions{}, 0).known());
}

}  // namespace
}  // namespace headrace::analysis
