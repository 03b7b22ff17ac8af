// What a pipeline's own instrumentation says of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "headrace/pipeline/pipeline.h"
#include "headrace/profile/current.h"
#include "headrace/profile/snapshot.h"

namespace headrace::pipeline {
namespace {

using profile::Profile;

void sleep_ms(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

class PipelineRecording : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = std::filesystem::temp_directory_path() / ("headrace-pipeline-" + std::to_string(getpid()));
    session_ = profile::CurrentSession::for_run(run_, 0);
  }
  void TearDown() override {
    profile::CurrentSession::close_all();
    session_.reset();
    std::filesystem::remove_all(run_);
  }

  template <class T>
  Profile profile_after(Pipeline<T>& pipeline, double step_ms) {
    while (pipeline.next()) sleep_ms(step_ms);
    profile::SegmentImage image;
    image.read_memory(session_->segment().data(), session_->segment().size());
    return profile::read_profile(image, static_cast<std::uint32_t>(pipeline.runtime().loader()->id()));
  }

  std::filesystem::path run_;
  std::shared_ptr<profile::Session> session_;
};

Pipeline<int> slow_source(int count, double ms, GeneratorOptions options = {}) {
  return generator<int>(
      "read",
      [count, ms](const Shard&) -> ItemMaker<int> {
        return [at = 0, count, ms]() mutable -> std::optional<int> {
          if (at == count) return std::nullopt;
          if (ms > 0) sleep_ms(ms);
          return at++;
        };
      },
      options);
}

double charged(const Profile& profile, const std::string& op) {
  double sum = 0;
  for (const auto& row : profile.stall_ledger) {
    if (row.op == op) sum += row.seconds;
  }
  return sum;
}

double ledger_sum(const Profile& profile) {
  double sum = 0;
  for (const auto& row : profile.stall_ledger) sum += row.seconds;
  return sum;
}

TEST_F(PipelineRecording, OperatorsAndQueuesStandInTheirOrder) {
  auto pipeline = slow_source(200, 0)
                      .map("decode",
                           [](int item) {
                             sleep_ms(1);
                             return item;
                           },
                           {.workers = 2, .capacity = 6})
                      .batch(4, BatchOptions{.capacity = 3});
  const Profile profile = profile_after(pipeline, 0.2);
  ASSERT_EQ(profile.operators.size(), 3U);
  EXPECT_EQ(profile.operators[0].name, "read");
  EXPECT_EQ(profile.operators[0].kind, profile::OperatorKind::generator);
  EXPECT_EQ(profile.operators[1].name, "decode");
  EXPECT_EQ(profile.operators[1].kind, profile::OperatorKind::map);
  EXPECT_EQ(profile.operators[1].workers, 2);
  EXPECT_NEAR(profile.operators[1].items_per_batch, 4, 0.3);
  EXPECT_EQ(profile.operators[1].items, 200U);
  EXPECT_EQ(profile.operators[2].kind, profile::OperatorKind::batch);
  EXPECT_EQ(profile.operators[2].items, 50U);
  ASSERT_EQ(profile.queues.size(), 3U);
  EXPECT_EQ(profile.queues[0].name, "read");
  EXPECT_EQ(profile.queues[0].to, "decode");
  EXPECT_EQ(profile.queues[1].capacity, 6);
  EXPECT_EQ(profile.queues[1].from, "decode");
  EXPECT_EQ(profile.queues[2].to, "sink");
  EXPECT_EQ(profile.sink.steps, 50U);
  EXPECT_EQ(profile.epochs, 1U);
}

TEST_F(PipelineRecording, ItemsOfAShuffleThatHoldsThemAllAreFollowed) {
  auto pipeline = slow_source(100, 0).shuffle(100, 0).map("decode", [](int item) {
    sleep_ms(1);
    return item;
  });
  const Profile profile = profile_after(pipeline, 0);
  EXPECT_GT(charged(profile, "decode"), 0.5 * ledger_sum(profile));
}

TEST_F(PipelineRecording, TheLedgerSumsToTheWaitAndNamesTheOperator) {
  auto pipeline = slow_source(300, 0.1)
                      .map("decode",
                           [](int item) {
                             sleep_ms(2);
                             return item;
                           },
                           {.workers = 2})
                      .batch(4);
  const Profile profile = profile_after(pipeline, 1);
  const double wait = profile.sink.getnext_wait.mean_s * static_cast<double>(profile.sink.getnext_wait.count);
  EXPECT_NEAR(ledger_sum(profile), wait, 0.01 * wait);
  EXPECT_GT(charged(profile, "decode"), 0.5 * wait);
  EXPECT_GT(charged(profile, "decode"), 5 * charged(profile, "read"));
}

TEST_F(PipelineRecording, ABusySourceIsChargedForItsItems) {
  auto pipeline = slow_source(100, 4).map("cheap", [](int item) { return item; }).batch(8);
  const Profile profile = profile_after(pipeline, 0.5);
  const double wait = profile.sink.getnext_wait.mean_s * static_cast<double>(profile.sink.getnext_wait.count);
  EXPECT_NEAR(ledger_sum(profile), wait, 0.01 * wait);
  EXPECT_GT(charged(profile, "read"), 0.5 * wait);
  EXPECT_GT(charged(profile, "read"), 5 * charged(profile, "cheap"));
}

/// A body that waits 4 ms, of which another process worked 1.
int served_elsewhere(int item) {
  RemoteService* service = RemoteService::current();
  EXPECT_NE(service, nullptr);
  sleep_ms(2);
  const std::int64_t began = metrics::Clock::monotonic_ns();
  sleep_ms(1);
  service->tell(began, began + 1'000'000, 900'000);
  sleep_ms(1);
  if (item % 10 == 3) throw std::runtime_error("no");
  return item;
}

TEST_F(PipelineRecording, WorkDoneElsewhereIsServiceAndTheRestHandOff) {
  auto pipeline =
      slow_source(100, 0).map("decode", served_elsewhere, {.on_error = OnError::skip, .in_processes = true});
  const Profile profile = profile_after(pipeline, 0);
  ASSERT_EQ(profile.operators.size(), 3U);
  const auto& decode = profile.operators[1];
  EXPECT_EQ(decode.name, "decode");
  EXPECT_EQ(decode.executor, profile::Executor::process);
  EXPECT_EQ(decode.items, 100U);
  EXPECT_EQ(decode.failures, 10U);
  EXPECT_NEAR(decode.service.mean_s, 1e-3, 0.1e-3);
  EXPECT_NEAR(*decode.cpu_s / decode.busy_s, 0.9, 0.02);
  const auto& handoff = profile.operators[2];
  EXPECT_EQ(handoff.name, "decode.handoff");
  EXPECT_EQ(handoff.kind, profile::OperatorKind::handoff);
  EXPECT_GT(handoff.busy_s, 2 * decode.busy_s);
  EXPECT_EQ(RemoteService::current(), nullptr);
}

TEST_F(PipelineRecording, ASlowItemInOrderIsCalledSo) {
  auto pipeline = slow_source(300, 0).map("decode",
                                          [](int item) {
                                            sleep_ms(item % 50 == 49 ? 60 : 1);
                                            return item;
                                          },
                                          {.workers = 4, .capacity = 8});
  const Profile profile = profile_after(pipeline, 1);
  double ordered = 0;
  for (const auto& row : profile.stall_ledger) {
    if (row.what == profile::WaitReason::order && row.op == "decode") ordered += row.seconds;
  }
  EXPECT_GT(ordered, 0.5 * ledger_sum(profile));
}

TEST_F(PipelineRecording, PassesFillTheSameCells) {
  auto pipeline = slow_source(20, 0).map("decode", [](int item) { return item; }, {.workers = 2}).batch(2);
  Profile profile;
  for (int pass = 0; pass < 30; ++pass) profile = profile_after(pipeline, 0);
  EXPECT_EQ(profile.epochs, 30U);
  EXPECT_EQ(profile.operators[1].items, 600U);
  EXPECT_LE(profile.operators[1].per_worker.size(), 2U);
  EXPECT_EQ(profile.queues.size(), 3U);
}

TEST_F(PipelineRecording, SkippedItemsAreCountedAsFailures) {
  auto pipeline = slow_source(100, 0).map("fragile",
                                          [](int item) {
                                            if (item % 10 == 0) throw std::runtime_error("broken");
                                            return item;
                                          },
                                          {.workers = 2, .on_error = OnError::skip});
  const Profile profile = profile_after(pipeline, 0);
  EXPECT_EQ(profile.operators[1].failures, 10U);
}

TEST_F(PipelineRecording, FastItemsAreCountedToo) {
  auto pipeline = slow_source(100'000, 0).map("inc", [](int item) { return item + 1; }).batch(64);
  const Profile profile = profile_after(pipeline, 0);
  ASSERT_EQ(profile.operators.size(), 3U);
  EXPECT_EQ(profile.sink.steps, 1563U);
  EXPECT_NEAR(profile.operators[1].items_per_batch, 64, 6);
}

TEST_F(PipelineRecording, TwoPipelinesOfTheSameNamesAreKeptApart) {
  auto first = slow_source(40, 0).map("decode", [](int item) { return item; });
  auto second = slow_source(20, 0).map("decode", [](int item) { return item; });
  const Profile of_first = profile_after(first, 0.1);
  const Profile of_second = profile_after(second, 0.1);
  EXPECT_EQ(of_first.sink.steps, 40U);
  EXPECT_EQ(of_second.sink.steps, 20U);
  ASSERT_EQ(of_second.operators.size(), 2U);
  EXPECT_EQ(of_second.operators[1].items, 20U);
  EXPECT_EQ(of_second.operators[1].name, "decode");
}

// More of them than a segment has room for: the earliest are folded, their operators and queues given out
// again.
TEST_F(PipelineRecording, EachPipelineHasFiguresOfItsOwnHoweverManyAreBuilt) {
  for (int built = 0; built < 60; ++built) {
    const int batches = 5 + built % 3;
    auto pipeline = slow_source(2 * batches, 0)
                        .map("decode", [](int item) { return item; }, {.workers = 2})
                        .map("augment" + std::to_string(built % 5), [](int item) { return item; })
                        .batch(2);
    const Profile profile = profile_after(pipeline, 0);
    EXPECT_EQ(profile.epochs, 1U);
    EXPECT_EQ(profile.sink.steps, static_cast<std::uint64_t>(batches));
    ASSERT_EQ(profile.operators.size(), 4U) << built;
    ASSERT_EQ(profile.queues.size(), 4U) << built;
    EXPECT_EQ(profile.operators[1].name, "decode");
    EXPECT_EQ(profile.operators[1].items, static_cast<std::uint64_t>(2 * batches)) << built;
    EXPECT_EQ(profile.operators[2].name, "augment" + std::to_string(built % 5));
    EXPECT_EQ(profile.operators[2].items, static_cast<std::uint64_t>(2 * batches)) << built;
    EXPECT_EQ(profile.queues[1].puts, static_cast<std::uint64_t>(2 * batches)) << built;
    EXPECT_EQ(profile.notes, std::vector<std::string>{}) << built;
  }
  profile::SegmentImage image;
  const auto session = profile::CurrentSession::peek();
  image.read_memory(session->segment().data(), session->segment().size());
  std::uint64_t steps = 0;
  for (const profile::LoaderSummary& loader : profile::list_loaders(image)) steps += loader.steps;
  EXPECT_EQ(steps, 60U * 6) << "those that were folded count as earlier loaders";
}

TEST_F(PipelineRecording, APipelineThatIsBuiltDifferentlyIsAnotherOne) {
  auto narrow = slow_source(40, 0).map("decode", [](int item) { return item; });
  profile_after(narrow, 0);
  auto wide = slow_source(20, 0).map("decode", [](int item) { return item; }, {.workers = 2});
  const Profile profile = profile_after(wide, 0);
  EXPECT_EQ(profile.sink.steps, 20U);
  EXPECT_EQ(profile.operators[1].items, 20U);
}

}  // namespace
}  // namespace headrace::pipeline
