// The document that templates draw a page from.
#include "headrace/report/page.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "headrace/analysis/verdict/diagnose.h"
#include "report/profiles.h"

namespace headrace::report {
namespace {

using nlohmann::json;
using profile::Profile;

json page_of(const Profile& profile) { return json::parse(page_json(profile, analysis::diagnose(profile))); }

/// Per stage: queues in front of it, then operators of its boxes.
std::string drawn(const Profile& profile) {
  std::string text;
  const json page = page_of(profile);
  for (const json& stage : page["graph"]) {
    text += text.empty() ? "" : " | ";
    for (const json& queue : stage["queues"]) {
      text += queue["name"].get<std::string>() + (queue["is_clear"] ? "" : "?") + " ";
    }
    for (const json& box : stage["boxes"]) text += box["operators"].dump();
  }
  return text;
}

TEST(Page, OperatorsStandInTheOrderOfTheFlow) {
  EXPECT_EQ(drawn(decode_limits()), "[0] | raw [1] | decoded [2] | ready []");
}

TEST(Page, BranchesSayWhereTheirQueuesLead) {
  Profile profile = decode_limits();
  profile.operators[1].kind = "source";
  profile.queues[0].to = "batch";  // read and decode feed batch side by side
  profile.queues[0].to_operators = {2};
  EXPECT_EQ(drawn(profile), "[0][1] | raw? decoded? [2] | ready []");
}

TEST(Page, QueuesThatLeadBackAreDrawn) {
  Profile profile = decode_limits();
  profile::QueueProfile back = profile.queues[2];
  back.name = "free buffers";
  back.from = "batch";
  back.from_operators = {2};
  back.to = "read";
  back.to_operators = {0};
  profile.queues.push_back(back);
  EXPECT_EQ(drawn(profile), "free buffers? [0] | raw [1] | decoded [2] | ready []");
}

TEST(Page, SamplerStandsBeforeTheWorkersThatTakeItsIndices) {
  Profile profile = in_workers(4);
  profile::OperatorProfile sampler = profile.operators[0];
  sampler.name = "HardExamples";
  sampler.kind = "sampler";
  sampler.segment = -1;
  sampler.in_sink = true;
  profile.operators.insert(profile.operators.begin(), sampler);
  const std::string graph = drawn(profile);
  EXPECT_TRUE(graph.starts_with("[0] | ")) << graph;
  EXPECT_NE(graph.find("index (4 queues) [1,2,3] | "), std::string::npos) << graph;
}

TEST(Page, WorkerIsBusyInAnyOfItsOperators) {
  Profile profile = in_workers(2);
  for (std::size_t i = 0; i < 3; ++i) {
    for (profile::WorkerProfile& worker : profile.operators[i].per_worker) {
      // To each of them its siblings' work is a wait.
      worker.states = {i == 1 ? 0.8 : 0.05, i == 0 ? 0.0 : 0.85, i == 2 ? 0.1 : 0.95, 0};
    }
  }
  const json states = page_of(profile)["workers"][0]["states"];
  EXPECT_NEAR(states["busy"].get<double>(), 0.9, 1e-9);
  EXPECT_NEAR(states["blocked_in"].get<double>(), 0, 1e-9);
  EXPECT_NEAR(states["blocked_out"].get<double>(), 0.1, 1e-9);
}

TEST(Page, FiguresThatAreNoneAreNull) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Profile profile = in_workers(3);
  profile.elapsed_s = profile.sink.step_s = profile.sink.wait_share = kNan;
  for (profile::OperatorProfile& op : profile.operators) op.states = {kNan, kNan, kNan, kNan};
  profile.queues[0].mean = profile.stall_ledger[0].seconds = kNan;
  profile.queues[0].name = profile.operators[1].name = "\xff\x1b";
  const json page = page_of(profile);
  EXPECT_TRUE(page["profile"]["sink"]["step_s"].is_null());
  EXPECT_TRUE(page["states"][0]["busy"].is_null());
}

}  // namespace
}  // namespace headrace::report
