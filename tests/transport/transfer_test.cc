#include "headrace/transport/transfer_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "headrace/profile/current.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/snapshot.h"
#include "headrace/transport/host_device.h"

namespace headrace::transport {
namespace {

using namespace std::chrono_literals;

/// A copy that the test ends.
class ByHand : public PendingCopy {
 public:
  bool done() override {
    if (failed) throw DeviceError("the copy failed");
    return ended;
  }
  void wait() override { ended = true; }
  std::int64_t copy_ns() override { return ended ? 1000 : -1; }
  bool ended = false;
  bool failed = false;
};

/// A run with one loop in it; `body` is the loop's step.
class Recorded : public testing::Test {
 protected:
  void SetUp() override {
    session_ = profile::Session::open({});
    profile::CurrentSession::push(session_);
    loader_ = std::make_shared<profile::LoaderHandle>(session_, "train", nullptr);
    loop_.emplace(loader_);
    step();
  }
  void TearDown() override {
    loop_.reset();
    profile::CurrentSession::pop(*session_);
    session_->close();
  }
  void step() {
    loop_->begin_wait();
    loop_->end_wait(true, false);
  }
  profile::OperatorProfile transfer_of_profile() {
    profile::SegmentImage now;
    now.read_memory(session_->segment().data(), session_->segment().size());
    for (const auto& op : profile::read_profile(now, 0).operators) {
      if (op.name == "to_device") return op;
    }
    return {};
  }

  std::shared_ptr<profile::Session> session_;
  std::shared_ptr<profile::LoaderHandle> loader_;
  std::optional<profile::LoopRecorder> loop_;
  std::shared_ptr<profile::OperatorHandle> op_ =
      std::make_shared<profile::OperatorHandle>("to_device", "transfer", 1, profile::kOfTheLoop);
};

TEST_F(Recorded, ABatchTellsItsBytesItsTimeAndItsWait) {
  HostDevice device({.buffers = 1, .bandwidth = 1e6});
  TransferRecorder recorder(op_);
  const std::vector<std::byte> array(5000);
  const HostBytes batch[] = {HostBytes(array)};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(op_->begin());
    Acquired acquired = acquire_recorded(device, bytes_needed(batch));
    const Copied copied = device.copy(batch, acquired.block);
    op_->end(false);
    recorder.copied(copied, acquired.waited_ns);
    step();
  }
  const profile::OperatorProfile op = transfer_of_profile();
  ASSERT_TRUE(op.transfer.has_value());
  EXPECT_EQ(op.transfer->copies, 3U);
  EXPECT_EQ(op.transfer->bytes, 15'000U);
  EXPECT_GE(op.transfer->copy_s, 15e-3);
  EXPECT_LE(*op.transfer->bytes_per_s, 1e6);
  EXPECT_EQ(op.transfer->buffer_wait_s, 0);
  EXPECT_FALSE(op.transfer->pinned_share);
}

TEST_F(Recorded, AWaitForABufferIsNoWork) {
  HostDevice device({.buffers = 1});
  Acquired held = device.acquire(10);
  std::atomic<bool> waits{false};
  std::thread consumer([&] {
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(50ms);
    held.block.give_back();
  });
  TransferRecorder recorder(op_);
  ASSERT_TRUE(op_->begin());
  waits = true;
  const Acquired acquired = acquire_recorded(device, 10);
  op_->end(false);
  consumer.join();
  recorder.copied({}, acquired.waited_ns);
  ASSERT_EQ(acquired.outcome, AcquireOutcome::acquired);
  EXPECT_GE(acquired.waited_ns, 40'000'000);
  const profile::OperatorProfile op = transfer_of_profile();
  EXPECT_GE(op.transfer->buffer_wait_s, 0.04);
  EXPECT_LT(op.busy_s, op.transfer->buffer_wait_s / 2);
}

TEST_F(Recorded, CopiesThatGoOnAreToldWhenTheyEnd) {
  TransferRecorder recorder(op_);
  const auto first = std::make_shared<ByHand>();
  const auto second = std::make_shared<ByHand>();
  const auto bytes_timed = [&] {
    const auto op = transfer_of_profile();
    return op.transfer->bytes_per_s.value_or(0) * op.transfer->copy_s;
  };
  for (const auto& copy : {first, second}) {
    ASSERT_TRUE(op_->begin());
    op_->end(false);
    Copied copied;
    copied.bytes = copied.pinned_bytes = 100;
    copied.completion = Completion(copy);
    recorder.copied(copied, 0);
  }
  EXPECT_EQ(transfer_of_profile().transfer->bytes, 200U);
  EXPECT_EQ(bytes_timed(), 0);
  first->ended = true;
  recorder.settle();
  EXPECT_DOUBLE_EQ(bytes_timed(), 100);
  recorder.finish();
  EXPECT_DOUBLE_EQ(bytes_timed(), 200);
  EXPECT_EQ(transfer_of_profile().transfer->pinned_share, 1.0);
}

TEST_F(Recorded, ACopyThatFailedHasNoTime) {
  TransferRecorder recorder(op_);
  const auto copy = std::make_shared<ByHand>();
  copy->failed = true;
  ASSERT_TRUE(op_->begin());
  op_->end(true);
  Copied copied;
  copied.bytes = 100;
  copied.completion = Completion(copy);
  recorder.copied(copied, 0);
  EXPECT_EQ(transfer_of_profile().transfer->copy_s, 0);
}

TEST(AcquireRecorded, WorksWhereNothingIsRecorded) {
  HostDevice device({.buffers = 1});
  Acquired held = acquire_recorded(device, 10);
  EXPECT_TRUE(held.block);
  EXPECT_EQ(acquire_recorded(device, 10, BlockRing::Clock::now() + 5ms).outcome, AcquireOutcome::timed_out);
  EXPECT_THROW(acquire_recorded(device, std::size_t{1} << 40), UsageError);
}

}  // namespace
}  // namespace headrace::transport
