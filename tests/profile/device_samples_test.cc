#include "headrace/profile/device_samples.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "headrace/profile/current.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/snapshot.h"
#include "support/current_run.h"

namespace headrace::profile {
namespace {

void rest(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// A device that says what it is told to say.
class FakeDevice : public DeviceClock {
 public:
  FakeDevice() { install(this); }
  ~FakeDevice() override { install(nullptr); }

  std::unique_ptr<DeviceSpan> begin() noexcept override {
    if (!in_use) return nullptr;
    ++begun;
    return std::make_unique<Span>(*this);
  }

  bool in_use = true;
  std::int64_t tells_ns = 0;
  int begun = 0, ended = 0, asked = 0;

 private:
  class Span : public DeviceSpan {
   public:
    explicit Span(FakeDevice& device) : device_(device) {}
    void end() noexcept override {
      ++device_.ended;
      ended_ = true;
    }
    std::int64_t ns() noexcept override {
      EXPECT_TRUE(ended_) << "asked before its second mark";
      ++device_.asked;
      return device_.tells_ns;
    }

   private:
    FakeDevice& device_;
    bool ended_ = false;
  };
};

class DeviceSpans : public CurrentRun {
 protected:
  static void get_next(LoopRecorder& loop, bool delivered = true) {
    loop.begin_wait();
    loop.end_wait(delivered, false);
  }
  /// Steps of so many milliseconds, to the end of the loop.
  SinkProfile run(int steps, int ms) {
    const auto loader = std::make_shared<LoaderHandle>(session_, "train", nullptr);
    LoopRecorder loop(loader);
    for (int i = 0; i < steps; ++i) {
      get_next(loop);
      rest(ms);
    }
    get_next(loop, false);
    return sink_of(*loader);
  }
  SinkProfile sink_of(const LoaderHandle& loader) {
    SegmentImage image;
    image.read_memory(session_->segment().data(), session_->segment().size());
    return read_profile(image, static_cast<std::uint32_t>(loader.id())).sink;
  }

  FakeDevice device_;
};

TEST_F(DeviceSpans, SomeStepsTellTheDevicesTime) {
  device_.tells_ns = 7'000'000;
  const SinkProfile sink = run(120, 3);
  EXPECT_GE(sink.device_steps, 4u);
  EXPECT_LE(sink.device_steps, 40u) << "about twenty a second";
  EXPECT_DOUBLE_EQ(sink.device_span_s.value_or(0), 0.007);
  EXPECT_GE(sink.device_host_s.value_or(0), 0.003);
  EXPECT_LT(sink.device_host_s.value_or(0), 2 * sink.compute_s);
  EXPECT_EQ(device_.begun, device_.ended);
}

TEST_F(DeviceSpans, EveryStepOfSlowLoopsIsMarked) {
  device_.tells_ns = 1;
  EXPECT_GE(run(8, 80).device_steps, 4u);
}

TEST_F(DeviceSpans, WithoutADeviceThereIsNoFigure) {
  device_.in_use = false;
  const SinkProfile sink = run(60, 3);
  EXPECT_FALSE(sink.device_span_s || sink.device_host_s);
  EXPECT_EQ(sink.device_steps, 0u);
}

TEST_F(DeviceSpans, WhatTheDeviceHasNotPassedIsAskedAgain) {
  device_.tells_ns = DeviceSpan::kNotYet;
  EXPECT_EQ(run(60, 3).device_steps, 0u);
  EXPECT_EQ(device_.begun, 1) << "one at a time";
  EXPECT_GE(device_.asked, 2);
}

TEST_F(DeviceSpans, WhatItCannotTellIsLeftOut) {
  device_.tells_ns = DeviceSpan::kNever;
  EXPECT_EQ(run(60, 3).device_steps, 0u);
  EXPECT_GE(device_.begun, 2);
}

TEST_F(DeviceSpans, AStepThatContainsAnotherLoopIsLeftOut) {
  device_.tells_ns = 5;
  const auto train = std::make_shared<LoaderHandle>(session_, "train", nullptr);
  const auto validate = std::make_shared<LoaderHandle>(session_, "validate", nullptr);
  LoopRecorder loop(train);
  for (int i = 0; i < 8; ++i) {
    get_next(loop);
    rest(40);
    LoopRecorder inner(validate);
    get_next(inner);
    rest(2);
    get_next(inner, false);
  }
  get_next(loop, false);
  EXPECT_EQ(sink_of(*train).device_steps, 0u);
  EXPECT_GE(device_.begun, 2);
}

}  // namespace
}  // namespace headrace::profile
