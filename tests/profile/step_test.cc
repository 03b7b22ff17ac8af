#include "headrace/profile/step.h"

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

using std::chrono::milliseconds;

void sleep(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

class Steps : public CurrentRun {
 protected:
  static void get_next(LoopRecorder& loop, bool delivered = true) {
    loop.begin_wait();
    loop.end_wait(delivered, false);
  }
  Profile profile_of(const LoaderHandle& loader, const SegmentImage* since = nullptr) {
    SegmentImage image;
    image.read_memory(session_->segment().data(), session_->segment().size());
    return read_profile(image, static_cast<std::uint32_t>(loader.id()), since);
  }
};

TEST_F(Steps, MarksOfAnotherThreadCutTheLoopsSteps) {
  const auto loader = std::make_shared<LoaderHandle>(session_, "train", nullptr);
  LoopRecorder loop(loader);
  constexpr int kSteps = 5;
  for (int i = 0; i < kSteps; ++i) {
    get_next(loop);
    sleep(1);
    forward_began();
    // Autograd runs hooks on threads of its own.
    std::thread([] {
      sleep(2);
      backward_ended();
    }).join();
    sleep(3);
  }
  get_next(loop, false);
  const SinkProfile sink = profile_of(*loader).sink;
  ASSERT_TRUE(sink.marked);
  EXPECT_EQ(sink.marked->steps, kSteps - 1u) << "the first one has no steady wait";
  EXPECT_EQ(sink.marked->of_steps, kSteps - 1u);
  EXPECT_EQ(sink.marked->tail_steps, kSteps - 1u);
  EXPECT_GE(sink.marked->iteration_gap_s, 0.001);
  EXPECT_GE(sink.marked->forward_backward_s, 0.002);
  EXPECT_GE(sink.marked->tail_s, 0.003);
  ASSERT_EQ(sink.sequence.size(), static_cast<std::size_t>(kSteps));
  for (const StepSample& step : sink.sequence) {
    ASSERT_TRUE(step.before_forward_s && step.tail_s);
    EXPECT_GE(*step.before_forward_s, 0.001);
    EXPECT_GE(*step.tail_s, 0.003);
    EXPECT_LE(*step.before_forward_s + *step.tail_s, step.compute_s - 0.0019);
    ASSERT_TRUE(step.cpu_s);
    EXPECT_GT(*step.cpu_s, 0);
    EXPECT_LT(*step.cpu_s, step.compute_s - 0.003) << "it sleeps";
  }
}

TEST_F(Steps, WithoutMarksThereIsNoBlock) {
  const auto loader = std::make_shared<LoaderHandle>(session_, "train", nullptr);
  LoopRecorder loop(loader);
  for (int i = 0; i < 3; ++i) get_next(loop);
  get_next(loop, false);
  forward_began();  // behind the loop
  const SinkProfile sink = profile_of(*loader).sink;
  EXPECT_FALSE(sink.marked);
  ASSERT_EQ(sink.sequence.size(), 3u);
  EXPECT_FALSE(sink.sequence[2].before_forward_s);
  EXPECT_FALSE(sink.sequence[2].tail_s);
}

TEST_F(Steps, AReportOfOneEpochCountsItsOwnMarks) {
  const auto loader = std::make_shared<LoaderHandle>(session_, "train", nullptr);
  const auto epoch = [&](int steps) {
    LoopRecorder loop(loader);
    for (int i = 0; i < steps; ++i) {
      get_next(loop);
      const Step step;
      sleep(1);
    }
    get_next(loop, false);
  };
  epoch(6);
  epoch(4);
  const auto starts = loader->epoch_starts();
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(profile_of(*loader).sink.marked->steps, 5u + 3u);
  const SinkProfile last = profile_of(*loader, starts[1].image.get()).sink;
  ASSERT_TRUE(last.marked);
  EXPECT_EQ(last.marked->steps, 3u);
  EXPECT_EQ(last.marked->of_steps, 3u);
  EXPECT_GE(last.marked->forward_backward_s, 0.001);
}

TEST_F(Steps, ValidationWithinAStepLeavesThatStepOut) {
  const auto train = std::make_shared<LoaderHandle>(session_, "train", nullptr);
  const auto validation = std::make_shared<LoaderHandle>(session_, "validation", nullptr);
  LoopRecorder loop(train);
  for (int i = 0; i < 6; ++i) {
    get_next(loop);
    if (i == 3) {  // at the beginning of the step: its forwards come first
      LoopRecorder inner(validation);
      for (int k = 0; k < 4; ++k) {
        get_next(inner);
        forward_began();
        sleep(1);
      }
      get_next(inner, false);
    }
    const Step step;
    sleep(1);
  }
  get_next(loop, false);
  const SinkProfile sink = profile_of(*train).sink;
  ASSERT_TRUE(sink.marked);
  EXPECT_EQ(sink.marked->of_steps, 5u);
  EXPECT_EQ(sink.marked->steps, 4u);
  EXPECT_EQ(profile_of(*validation).sink.marked->steps, 3u);
  EXPECT_EQ(profile_of(*validation).sink.marked->tail_steps, 0u);
}

}  // namespace
}  // namespace headrace::profile
