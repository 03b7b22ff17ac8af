// Who gets a lane on the page, what stands in it, and which waits are shown close up.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "../../src/report/lane_rows.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/profile/layout.h"
#include "headrace/report/page.h"
#include "report/profiles.h"
#include "support/times.h"

namespace headrace::report {
namespace {

using metrics::WorkerState;
using profile::History;

/// Four steps of 10 ms from 100 ms on: the loop waits for 6 ms, computes for 4. decode has two threads, of which
/// the first is busy for 8 of each 10 ms; read is blocked but for the first millisecond. Another loader runs
/// beside it.
History two_workers() {
  History history;
  history.operators = {
      {"read", 0, 1, 0}, {"decode", 0, 1, 1}, {"other", 0, 0, 0}, {"loop", profile::kIsWrappedObject, 1, 2}};
  history.loops.resize(3);
  history.loops[0].loader = "other loader";
  profile::LoopHistory& loop = history.loops[1];
  loop.loader = "images";
  profile::WorkerStates read{-1, -1, 7, 71, {}};
  profile::WorkerStates first{-1, -1, 7, 72, {}};
  profile::WorkerStates second{-1, -1, 7, 73, {}};
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = (100 + 10 * step) * kMs;
    const std::int64_t wait = (step == 2 ? 8 : 6) * kMs;
    loop.calls.push_back({at, at + wait, static_cast<std::uint64_t>(step), false, false, 1});
    read.slices.push_back({at, at + kMs, 0, WorkerState::idle, 1});
    read.slices.push_back({at + kMs, at + 10 * kMs, -1, WorkerState::blocked_out, 0});
    first.slices.push_back({at, at + 8 * kMs, 1, WorkerState::idle, 1});
    first.slices.push_back({at + 8 * kMs, at + 10 * kMs, -1, WorkerState::blocked_in, 0});
    second.slices.push_back({at + 7 * kMs, at + 9 * kMs, 1, WorkerState::idle, 1});
  }
  loop.ends_ns = {140 * kMs};
  profile::WorkerStates foreign{0, 0, 8, 81, {{100 * kMs, 140 * kMs, 2, WorkerState::idle, 1}}};
  history.workers = {second, foreign, read, first};
  history.queues = {{"decoded", 4, 1, {{100 * kMs, 0}, {120 * kMs, 4}}}, {"foreign", 4, 0, {{100 * kMs, 1}}}};
  history.until_ns = 141 * kMs;
  return history;
}

std::string drawn(const LaneRow& row) {
  std::string words;
  for (const Piece& piece : row.pieces) {
    words += (words.empty() ? "" : " ") + std::to_string(piece.begin) + "-" + std::to_string(piece.end) +
             ":" + piece.css_class;
  }
  return words;
}

TEST(Lanes, BelongToTheLoaderInTheOrderOfThePipeline) {
  const History history = two_workers();
  const LoopLanes lanes = lanes_of(history, "images");
  EXPECT_EQ(lanes.names, (std::vector<std::string>{"read", "decode 1", "decode 2"}));
  EXPECT_EQ(lanes.whole.begin_ns, 100 * kMs);
  EXPECT_EQ(lanes.whole.end_ns, 140 * kMs);
  EXPECT_EQ(lanes_of(history, "none").loop, nullptr);
}

TEST(Lanes, ShowWhatTookTheLongestInEachColumn) {
  const History history = two_workers();
  const LoopLanes lanes = lanes_of(history, "images");
  // One step in ten columns.
  const std::vector<LaneRow> rows = lane_rows(lanes, {100 * kMs, 110 * kMs}, 10, 8);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(drawn(rows[0]), "0-6:starved 6-10:compute");
  EXPECT_EQ(drawn(rows[1]), "0-1:busy 1-10:blocked");
  // history.workers has the second thread first.
  EXPECT_EQ(drawn(rows[2]), "7-9:busy");
  EXPECT_EQ(drawn(rows[3]), "0-8:busy 8-10:waits");
  EXPECT_EQ(rows[4].name, "decoded");
  EXPECT_EQ(drawn(rows[4]), "0-10:l0");
  // All of it in four columns: a step each.
  const std::vector<LaneRow> coarse = lane_rows(lanes, lanes.whole, 4, 8);
  EXPECT_EQ(drawn(coarse[0]), "0-4:starved");
  EXPECT_EQ(drawn(coarse[3]), "0-4:busy");
  EXPECT_EQ(drawn(coarse[4]), "0-2:l0 2-4:l4");
}

TEST(Lanes, NameTheLongestWaitsAndWhoWasBusy) {
  const History history = two_workers();
  const LoopLanes lanes = lanes_of(history, "images");
  const std::vector<profile::GetNextCall> calls = longest_calls(*lanes.loop, 2);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].batch, 2U);
  EXPECT_EQ(calls[1].batch, 1U) << "the first batch of an epoch is start-up";
  const std::vector<BusyOperator> busy = busy_operators(lanes, {120 * kMs, 128 * kMs});
  ASSERT_EQ(busy.size(), 2U);
  EXPECT_EQ(busy[0].name, "decode");
  EXPECT_DOUBLE_EQ(busy[0].share, 1);
  EXPECT_EQ(busy[1].name, "read");
  EXPECT_DOUBLE_EQ(busy[1].share, 1.0 / 8);
}

TEST(Lanes, AreInThePageOfARunWithItsHistory) {
  profile::Profile profile = decode_limits();
  profile.loader = "images";
  const auto lanes_of_page = [&](const PageOptions& options) {
    return nlohmann::json::parse(page_json(profile, analysis::diagnose(profile), options))["lanes"];
  };
  EXPECT_TRUE(lanes_of_page({}).is_null());
  const History history = two_workers();
  const nlohmann::json lanes = lanes_of_page({&history});
  EXPECT_NEAR(lanes["picture"]["from_s"].get<double>(), 0, 1e-9);
  EXPECT_NEAR(lanes["picture"]["to_s"].get<double>(), 0.04, 1e-9);
  const nlohmann::json& wait = lanes["waits"][0];
  EXPECT_EQ(wait["batch"], 2);
  EXPECT_NEAR(wait["begin_s"].get<double>(), 0.02, 1e-9);
  EXPECT_NEAR(wait["end_s"].get<double>(), 0.028, 1e-9);
  EXPECT_EQ(wait["busy"][0], nlohmann::json::array({"decode", 1.0}));
  const nlohmann::json asked = lanes_of_page({&history, 0.01, 0.02});
  EXPECT_NEAR(asked["picture"]["from_s"].get<double>(), 0.01, 1e-9);
}

TEST(Lanes, OfADamagedHistoryAreAPageAsWell) {
  profile::Profile profile = decode_limits();
  profile.loader = "images";
  const analysis::Diagnosis diagnosis = analysis::diagnose(profile);
  constexpr std::int64_t kFar = std::int64_t{1} << 61;
  History history = two_workers();
  history.loops[1].calls.push_back({kFar - 1, kFar, 9, false, true, std::nan("")});
  history.loops[1].ends_ns = {0, kFar};
  history.workers[0].slices = {{kFar, 0, 99, WorkerState::idle, -1},
                               {0, kFar, -7, WorkerState::blocked_in, 3}};
  history.operators[1].name = "<script>&\"'\x01\xff";
  history.queues[0].capacity = std::numeric_limits<std::int64_t>::max();
  history.queues[0].samples = {{kFar, -1}, {0, std::nan("")}, {5, 1e300}};
  for (const auto& [from_s, to_s] :
       {std::pair{0.0, 0.0}, std::pair{std::nan(""), 1.0}, std::pair{5.0, 1.0}, std::pair{-1e300, 1e300}}) {
    const std::string page = page_json(profile, diagnosis, {&history, from_s, to_s});
    EXPECT_TRUE(nlohmann::json::parse(page)["lanes"]["picture"]["rows"].is_array());
  }
}

}  // namespace
}  // namespace headrace::report
