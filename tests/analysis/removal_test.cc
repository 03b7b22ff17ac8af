// Which operator's absence gains most.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "headrace/analysis/diagnosis/removal.h"

namespace headrace::analysis {
namespace {

using profile::OperatorKind;
using profile::Profile;

Profile of_operators(const std::vector<OperatorKind>& kinds) {
  Profile profile;
  for (OperatorKind kind : kinds) {
    profile::OperatorProfile& op = profile.operators.emplace_back();
    op.kind = kind;
    op.demand_s = 0.010;
  }
  return profile;
}

/// A step of 10 ms, or what it would be without one operator.
class Without final : public Predictor {
 public:
  Without(const Profile& profile, std::vector<std::optional<double>> steps_s)
      : Predictor(profile), steps_s_(std::move(steps_s)) {}

  Prediction predict(const std::vector<Change>& changes) const override {
    Prediction then;
    const std::optional<double> step_s =
        changes.empty() ? 0.010 : steps_s_[static_cast<std::size_t>(changes.front().index)];
    then.known = step_s.has_value();
    then.step_s = step_s.value_or(0);
    EXPECT_TRUE(changes.empty() || changes.front().factor == 0);
    return then;
  }

 private:
  std::vector<std::optional<double>> steps_s_;
};

TEST(Removal, TheOperatorThatGainsMostIsFound) {
  const Profile profile = of_operators({OperatorKind::source, OperatorKind::map, OperatorKind::map});
  const Without predictor(profile, {0.009, 0.004, 0.007});
  EXPECT_EQ(most_gained_by_removing(predictor, 2).index, 1);
  EXPECT_DOUBLE_EQ(*most_gained_by_removing(predictor, 2).step_s, 0.004);
  EXPECT_EQ(most_gained_by_removing(predictor, 1).index, 1);
}

TEST(Removal, ASmallDifferenceChangesNothing) {
  const Profile profile = of_operators({OperatorKind::map, OperatorKind::map});
  EXPECT_EQ(most_gained_by_removing(Without(profile, {0.0052, 0.005}), 0).index, 0);   // 4 % more
  EXPECT_EQ(most_gained_by_removing(Without(profile, {0.0099, 0.0097}), 0).index, 0);  // 2 % of the step
  EXPECT_EQ(most_gained_by_removing(Without(profile, {0.0080, 0.0070}), 0).index, 1);
}

TEST(Removal, WhatIsNotPredictedKeepsItsPlace) {
  const Profile profile = of_operators({OperatorKind::map, OperatorKind::map});
  EXPECT_EQ(most_gained_by_removing(Without(profile, {std::nullopt, 0.001}), 0).index, 0);
  EXPECT_FALSE(most_gained_by_removing(Without(profile, {std::nullopt, 0.001}), 0).step_s);
  EXPECT_EQ(most_gained_by_removing(Without(profile, {0.009, std::nullopt}), 0).index, 0);
}

TEST(Removal, HandingOverIsPartOfWhatMakesTheBatches) {
  const Profile profile = of_operators({OperatorKind::map, OperatorKind::handoff});
  EXPECT_EQ(most_gained_by_removing(Without(profile, {0.009, 0.001}), 0).index, 0);
}

}  // namespace
}  // namespace headrace::analysis
