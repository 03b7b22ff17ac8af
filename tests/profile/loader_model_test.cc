#include "headrace/profile/loader_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile.h"

namespace headrace::profile {
namespace {

constexpr const char* kModel =
    R"({"framework":"x","stages":[{"name":"read","gets_work":"own_shard"},{"name":"work","workers":4,)"
    R"("runs_in":"process","operators":[1,2],"widened_by":"threads"}],)"
    R"("buffers":[{"from":1,"capacity":3,"is_window":true,"set_by":"ahead"}],)"
    R"("delivery":{"ordered":false,"draws":0},)"
    R"("parameters":[{"name":"threads","value":4,"sets":"workers","min":0},{"name":"ahead","value":3,)"
    R"("sets":"window","needs_workers":true},{"name":"keep","value":true,"usual":false}],"shard_advice":"s"})";

TEST(LoaderModel, IsReadFromWhatAnAdapterWrites) {
  const auto model = loader_model_from_json(kModel);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->framework, "x");
  ASSERT_EQ(model->stages.size(), 2U);
  EXPECT_EQ(model->stages[0].gets_work, GetsWork::own_shard);
  EXPECT_EQ(model->stages[1].runs_in, RunsIn::process);
  EXPECT_EQ(model->stages[1].workers, 4);
  EXPECT_TRUE(model->stages[1].operators.empty());  // they say themselves where they stand
  EXPECT_TRUE(model->buffers[0].is_window);
  EXPECT_FALSE(model->delivery.ordered);
  EXPECT_EQ(model->delivery.pins, -1);
  ASSERT_NE(parameter_that_sets(model->parameters, Quantity::window), nullptr);
  EXPECT_EQ(parameter_that_sets(model->parameters, Quantity::window)->name, "ahead");
  EXPECT_EQ(parameter_that_sets(model->parameters, Quantity::order), nullptr);
  EXPECT_EQ(model->parameters[2].usual, ParameterValue(false));
}

TEST(LoaderModel, SurvivesAReport) {
  Profile profile;
  profile.model = loader_model_from_json(kModel);
  profile.operators.resize(3);
  profile.model->stages[1].operators = {1, 2};
  const Profile read = profile_from_tree(to_json(profile));
  EXPECT_EQ(to_json(read)["model"], to_json(profile)["model"]);
  EXPECT_EQ(read.model->parameters[0].value, ParameterValue(4));
  EXPECT_FALSE(profile_from_tree(to_json(Profile{})).model);
}

TEST(LoaderModel, WhatIsNoneIsRefused) {
  for (const char* text : {"", "{", "[]", "7", R"({"stages":{}})", R"({"stages":[{"runs_in":"the moon"}]})",
                           R"({"stages":[{"runs_in":7}]})", R"({"parameters":[{"value":[]}]})"}) {
    EXPECT_FALSE(loader_model_from_json(text)) << text;
  }
}

TEST(LoaderModel, AbsurdFiguresAreBounded) {
  const auto model = loader_model_from_json(
      R"({"stages":[{"workers":-3},{"workers":1e30}],"buffers":[{"from":9,"to":-7,"capacity":-1}],)"
      R"("delivery":{"draws":2,"pins":1}})");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->stages[0].workers, 0);
  EXPECT_EQ(model->stages[1].workers, 1'000'000);
  EXPECT_EQ(model->buffers[0].from, -1);
  EXPECT_EQ(model->buffers[0].to, -1);
  EXPECT_EQ(model->buffers[0].capacity, 0);
  EXPECT_EQ(model->delivery.draws, -1);
  EXPECT_EQ(model->delivery.pins, 1);
}

TEST(LoaderModel, OperatorsThatAreNotThereAreLeftOut) {
  LoaderModel model;
  model.stages.resize(1);
  model.stages[0].operators = {-1, 0, 1, 2, 1'000'000};
  put_within_bounds(model, 2);
  EXPECT_EQ(model.stages[0].operators, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace headrace::profile
