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
