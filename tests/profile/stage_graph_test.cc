// A loader whose stages are connected by queues, as its adapter records it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/profile/overlapping_calls.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/snapshot.h"
#include "headrace/profile/stages.h"
#include "support/current_run.h"

namespace headrace::profile {
namespace {

using std::chrono::milliseconds;

constexpr const char* kBeltsModel =
    R"({"framework":"belts","stages":[{"name":"read","runs_in":"thread"},)"
    R"({"name":"decode","runs_in":"thread","workers":2,"widened_by":"decode.hands"},)"
    R"({"name":"ship","runs_in":"async"}],)"
    R"("buffers":[{"from":0,"to":1,"capacity":2},{"from":1,"to":2,"capacity":2},)"
    R"({"from":2,"to":-1,"capacity":3,"set_by":"tray"}],)"
    R"("parameters":[{"name":"decode.hands","value":2,"min":1,"sets":"workers","stage":1},)"
    R"({"name":"tray","value":3,"min":1,"sets":"capacity","stage":2}]})";

/// A loader with three stages, the last of which nothing is timed of.
class StageGraph : public CurrentRun {
 protected:
  void SetUp() override {
    CurrentRun::SetUp();
    loader_ = std::make_shared<LoaderHandle>(session_, "belt", nullptr);
    const int id = loader_->id();
    read_ = std::make_unique<OperatorHandle>("read", "source", 0, 0, "", id, 0);
    decode_ = std::make_shared<OperatorHandle>("decode", "map", 0, 0, "", id, kPlacesPerStage);
    ship_ = std::make_unique<OperatorHandle>("ship", "prefetch", 0, 0, "", id, 2 * kPlacesPerStage);
    ship_->id_in(*session_);
    raw_ = std::make_unique<QueueHandle>("raw", 2, id, StageEdge{0, 1});
    decoded_ = std::make_unique<QueueHandle>("decoded", 2, id, StageEdge{1, 2});
    shipped_ = std::make_unique<QueueHandle>("shipped", 3, id, StageEdge{2, -1});
    loader_->describe(kBeltsModel, 2);
  }
  void TearDown() override {
    loader_.reset();
    CurrentRun::TearDown();
  }

  /// `steps` batches, each read, decoded in another thread and taken.
  void loop(int steps) {
    LoopRecorder loop(loader_);
    for (int i = 0; i < steps; ++i) {
      loop.begin_wait();
      std::thread([&] {
        call(*read_, milliseconds(0));
        raw_->put(1, 0, true, nullptr);
        raw_->get(0, 0, true, nullptr);
        call(*decode_, milliseconds(2));
        decoded_->put(1, 3'000'000, true, nullptr);
        decoded_->get(0, 0, true, nullptr);
        shipped_->put(1, 0, true, nullptr);
        shipped_->get(0, 0, true, nullptr);
      }).join();
      loop.end_wait(true, false, 0);
    }
    loop.end_loop();
  }

  static void call(OperatorHandle& op, milliseconds lasts) {
    ASSERT_TRUE(op.begin());
    std::this_thread::sleep_for(lasts);
    op.end(false);
  }

  Profile profile() {
    SegmentImage image;
    image.read_memory(session_->segment().data(), session_->segment().size());
    return read_profile(image, static_cast<std::uint32_t>(loader_->id()));
  }

  std::shared_ptr<LoaderHandle> loader_;
  std::unique_ptr<OperatorHandle> read_;
  std::shared_ptr<OperatorHandle> decode_;
  std::unique_ptr<OperatorHandle> ship_;
  std::unique_ptr<QueueHandle> raw_;
  std::unique_ptr<QueueHandle> decoded_;
  std::unique_ptr<QueueHandle> shipped_;
};

TEST_F(StageGraph, QueuesConnectTheStagesTheyName) {
  loop(12);
  const Profile found = profile();
  ASSERT_EQ(found.operators.size(), 3U);
  EXPECT_EQ(found.operators[0].name, "read");
  EXPECT_EQ(found.operators[1].name, "decode");
  EXPECT_EQ(found.operators[2].name, "ship");
  ASSERT_EQ(found.queues.size(), 3U);
  EXPECT_EQ(found.queues[0].from_operators, (std::vector<int>{0}));
  EXPECT_EQ(found.queues[0].to_operators, (std::vector<int>{1}));
  EXPECT_EQ(found.queues[1].from, "decode");
  EXPECT_EQ(found.queues[1].to, "ship");
  EXPECT_EQ(found.queues[2].from_operators, (std::vector<int>{2}));
  EXPECT_TRUE(found.queues[2].to_sink);
  EXPECT_EQ(found.queues[2].puts, 12U);
  EXPECT_EQ(found.model->stages[1].operators, (std::vector<int>{1}));
}

TEST_F(StageGraph, OperatorsMoveOnForStagesInFrontOfThem) {
  loop(12);
  loader_->put_in_front(1);
  OperatorHandle("list", "source", 0, 0, "", loader_->id(), 0).id_in(*session_);
  loader_->describe(
      R"({"framework":"belts","stages":[{"name":"list"},{"name":"read"},{"name":"decode"},{"name":"ship"}]})",
      1);
  const Profile found = profile();
  ASSERT_EQ(found.operators.size(), 4U);
  EXPECT_EQ(found.operators[0].name, "list");
  EXPECT_EQ(found.operators[1].name, "read");
  EXPECT_EQ(found.operators[3].name, "ship");
  EXPECT_EQ(found.model->stages[2].operators, (std::vector<int>{2}));
}

TEST_F(StageGraph, WorkersAndParametersAreTheModels) {
  loop(12);
  const Profile found = profile();
  EXPECT_EQ(found.operators[0].workers, 1);
  EXPECT_TRUE(found.operators[0].parameters.empty());
  EXPECT_EQ(found.operators[1].workers, 2);
  ASSERT_EQ(found.operators[1].parameters.size(), 1U);
  EXPECT_EQ(found.operators[1].parameters[0].parameter, "decode.hands");
  EXPECT_EQ(found.operators[1].parameters[0].value, 2);
  EXPECT_TRUE(found.queues[0].parameters.empty());
  ASSERT_EQ(found.queues[2].parameters.size(), 1U);
  EXPECT_EQ(found.queues[2].parameters[0].parameter, "tray");
}

TEST_F(StageGraph, AStageIsBlockedWhileItsItemsWaitToBePut) {
  loop(12);
  const Profile found = profile();
  EXPECT_GT(found.operators[1].states.blocked_out, 0);
  EXPECT_EQ(found.operators[0].states.blocked_out, 0);
  EXPECT_GT(found.operators[1].states.busy, found.operators[0].states.busy);
}

TEST_F(StageGraph, WhatNothingTellsOfAnUntimedStageIsAbsent) {
  loop(12);
  const Profile found = profile();
  EXPECT_FALSE(found.operators[2].items);
  EXPECT_LT(found.operators[2].busy_s, 0);
  EXPECT_LT(found.operators[2].demand_s, 0);
  EXPECT_EQ(found.operators[2].fidelity, Fidelity::sampled);
  EXPECT_EQ(found.operators[1].items, 12U);
  EXPECT_FALSE(found.queues[2].samples);
}

TEST_F(StageGraph, AnUntimedStageIsJudgedByTheLevelsOfItsQueues) {
  read_->id_in(*session_);
  decode_->id_in(*session_);
  LoopRecorder loop(loader_);
  for (int i = 0; i < 20; ++i) {
    loop.begin_wait();
    std::this_thread::sleep_for(milliseconds(2));
    loop.end_wait(true, false, 0);
    const std::int64_t now = metrics::Clock::now_ns();
    raw_->sampled(2, now);
    decoded_->sampled(i % 4 == 0 ? 0 : 2, now);  // without input for a quarter of the time
    shipped_->sampled(0, now);
  }
  loop.end_loop();
  const Profile found = profile();
  ASSERT_EQ(found.operators.size(), 3U);
  EXPECT_EQ(found.queues[1].samples, 20U);
  EXPECT_FALSE(found.queues[1].puts);
  EXPECT_FALSE(found.queues[1].get_wait_s);
  EXPECT_EQ(found.queues[1].fidelity, Fidelity::sampled);
  const OperatorProfile& ship = found.operators[2];
  EXPECT_NEAR(ship.states.blocked_in, 0.25, 0.15);
  EXPECT_NEAR(ship.states.busy, 0.75, 0.15);
  EXPECT_NEAR(ship.demand_s, 0.75 * found.sink.step_s, 0.2 * found.sink.step_s);
  EXPECT_EQ(found.operators[0].states.busy, 0);
  EXPECT_GT(found.operators[0].states.blocked_out, 0.9);
}

TEST_F(StageGraph, TakingReadyBatchesIsChargedToNoOperator) {
  LoopRecorder loop(loader_);
  for (int i = 0; i < 5; ++i) {
    loop.begin_wait();
    std::this_thread::sleep_for(milliseconds(1));
    loop.end_wait(true, false, 1);
  }
  loop.end_loop();
  const Profile found = profile();
  ASSERT_FALSE(found.stall_ledger.empty());
  EXPECT_EQ(found.stall_ledger[0].what, WaitReason::handoff);
  EXPECT_EQ(found.stall_ledger[0].op, "");
}

TEST_F(StageGraph, TheWaitIsChargedToTheBusyStageWithInput) {
  LoopRecorder loop(loader_);
  std::atomic<bool> decoding{false};
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    ASSERT_TRUE(decode_->begin());
    raw_->put(1, 0, true, nullptr);
    decoding.store(true);
    while (!stop.load()) std::this_thread::sleep_for(milliseconds(1));
    decode_->end(false);
  });
  while (!decoding.load()) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    loop.begin_wait();
    std::this_thread::sleep_for(milliseconds(1));
    loop.end_wait(true, false, 0);
  }
  loop.end_loop();
  stop.store(true);
  worker.join();
  const Profile found = profile();
  ASSERT_EQ(found.stall_ledger.size(), 1U);
  EXPECT_EQ(found.stall_ledger[0].what, WaitReason::in_service);
  EXPECT_EQ(found.stall_ledger[0].op, "decode");
}

TEST_F(StageGraph, CallsThatOverlapOnOneThreadHaveWorkersOfTheirOwn) {
  LoopRecorder loop(loader_);
  OverlappingCalls calls(decode_);
  for (int i = 0; i < 5; ++i) {
    loop.begin_wait();
    const std::int64_t first = metrics::Clock::now_ns();
    const std::int64_t second = metrics::Clock::now_ns();
    std::this_thread::sleep_for(milliseconds(2));
    calls.done(first, false);
    calls.done(second, i == 4);
    loop.end_wait(true, false, 0);
  }
  loop.end_loop();
  const Profile found = profile();
  const OperatorProfile& decode = found.operators[0];
  EXPECT_EQ(decode.items, 10U);
  EXPECT_EQ(decode.failures, 1U);
  EXPECT_EQ(decode.per_worker.size(), 2U);
  EXPECT_FALSE(decode.cpu_s.has_value());
  // Four steps of 2 ms count, each in two workers.
  EXPECT_GT(decode.busy_s, 0.015);
}

}  // namespace
}  // namespace headrace::profile
