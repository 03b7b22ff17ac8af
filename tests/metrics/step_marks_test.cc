#include "headrace/metrics/step_marks.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "headrace/metrics/step_listener.h"

namespace headrace::metrics {
namespace {

void expect_cuts(const StepListener& listener, std::int64_t delivered, std::int64_t now, std::int64_t before,
                 std::int64_t tail) {
  const StepListener::Cuts cuts = listener.cuts(delivered, now);
  EXPECT_EQ(cuts.before_forward_ns, before);
  EXPECT_EQ(cuts.tail_ns, tail);
}

TEST(StepMarks, FirstBeginningAndLastEndCount) {
  StepMarks marks;
  EXPECT_FALSE(marks.anyone_listens());
  marks.forward_began(5);  // into the void
  const int place = marks.join();
  EXPECT_TRUE(marks.anyone_listens());
  EXPECT_EQ(marks.heard(place).forward_began_ns, 0);
  for (const std::int64_t now : {10, 20, 30}) {
    marks.forward_began(now);
    marks.backward_ended(now + 1);
    marks.update_began(now + 2);
  }
  EXPECT_EQ(marks.heard(place).forward_began_ns, 10);
  EXPECT_EQ(marks.heard(place).backward_ended_ns, 31);
  EXPECT_EQ(marks.heard(place).update_began_ns, 32);
  marks.forget(place);
  EXPECT_EQ(marks.heard(place).forward_began_ns, 0);
  marks.leave(place);
  EXPECT_FALSE(marks.anyone_listens());
}

TEST(StepMarks, PlacesAreGivenOutOnceAndAgain) {
  StepMarks marks;
  std::vector<int> places;
  for (int i = 0; i < StepMarks::kPlaces; ++i) places.push_back(marks.join());
  EXPECT_EQ(marks.join(), StepMarks::kNoPlace);
  marks.forward_began(7);
  marks.leave(places[3]);
  EXPECT_EQ(marks.join(), places[3]);
  EXPECT_EQ(marks.heard(places[3]).forward_began_ns, 0) << "nothing is left of the one before";
  EXPECT_EQ(marks.heard(places[4]).forward_began_ns, 7);
}

TEST(StepMarks, AThreadThatRunsALoopTellsItsOwnAlone) {
  StepMarks marks;
  const int mine = marks.join();
  int theirs = StepMarks::kNoPlace;
  std::thread([&] {
    theirs = marks.join();
    marks.forward_began(20);
    marks.backward_ended(21);
  }).join();
  EXPECT_EQ(marks.heard(mine).forward_began_ns, 0);
  EXPECT_EQ(marks.heard(mine).backward_ended_ns, 0);
  EXPECT_EQ(marks.heard(theirs).forward_began_ns, 20);
  marks.forward_began(10);
  EXPECT_EQ(marks.heard(mine).forward_began_ns, 10);
  const int nested = marks.join();
  marks.update_began(30);
  EXPECT_EQ(marks.heard(mine).update_began_ns, 30);
  EXPECT_EQ(marks.heard(nested).update_began_ns, 30);
  EXPECT_EQ(marks.heard(theirs).update_began_ns, 0);
}

TEST(StepMarks, AThreadWithoutALoopTellsAll) {
  StepMarks marks;
  const int mine = marks.join();
  int theirs = StepMarks::kNoPlace;
  std::thread([&] {
    theirs = marks.join();
    std::thread([&] { marks.backward_ended(40); }).join();  // autograd's
  }).join();
  for (const int place : {mine, theirs}) EXPECT_EQ(marks.heard(place).backward_ended_ns, 40);
  marks.leave(mine);
  marks.forward_began(50);  // this thread's loop has ended
  EXPECT_EQ(marks.heard(theirs).forward_began_ns, 50);
}

TEST(StepMarks, LoopsOfManyThreadsListenWhileOthersTell) {
  StepMarks marks;
  std::vector<std::thread> threads;
  for (int teller = 0; teller < 2; ++teller) {
    threads.emplace_back([&] {
      for (std::int64_t now = 1; now <= 20'000; ++now) {
        marks.forward_began(now);
        marks.backward_ended(now);
        marks.update_began(now);
      }
    });
  }
  for (int loop = 0; loop < 3; ++loop) {
    threads.emplace_back([&] {
      for (int epoch = 0; epoch < 200; ++epoch) {
        StepListener listener;
        listener.join(marks);
        for (int step = 0; step < 10; ++step) {
          listener.begin_step();
          listener.exclude(1);
          const StepListener::Cuts cuts = listener.cuts(1, 20'000);
          if (cuts.before_forward_ns >= 0) {
            EXPECT_LE(cuts.before_forward_ns, 20'000);
          } else {
            EXPECT_EQ(cuts.tail_ns, StepListener::kUnknown);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(marks.anyone_listens());
}

TEST(StepListener, CutsAtTheMarks) {
  StepMarks marks;
  StepListener listener;
  expect_cuts(listener, 0, 100, -1, -1);
  listener.join(marks);
  listener.begin_step();
  expect_cuts(listener, 100, 200, -1, -1);
  marks.forward_began(110);
  expect_cuts(listener, 100, 200, 10, -1);
  marks.backward_ended(150);
  expect_cuts(listener, 100, 200, 10, 50);
  listener.begin_step();
  expect_cuts(listener, 200, 300, -1, -1);
}

TEST(StepListener, MarksFromOutsideOfTheStepDoNotCount) {
  StepMarks marks;
  StepListener listener;
  listener.join(marks);
  marks.forward_began(90);  // before the batch
  expect_cuts(listener, 100, 200, -1, -1);
  listener.begin_step();
  marks.forward_began(250);  // another thread's clock is ahead
  expect_cuts(listener, 100, 200, -1, -1);
  listener.begin_step();
  marks.backward_ended(105);  // of what was computed before: forward begins later
  marks.forward_began(110);
  expect_cuts(listener, 100, 200, 10, -1);
  marks.backward_ended(201);
  expect_cuts(listener, 100, 200, 10, -1);
}

TEST(StepListener, TheUpdateTellsWhereAutogradDidNot) {
  StepMarks marks;
  StepListener listener;
  listener.join(marks);
  listener.begin_step();
  marks.forward_began(110);
  marks.update_began(160);
  expect_cuts(listener, 100, 200, 10, 40);
  marks.backward_ended(150);
  expect_cuts(listener, 100, 200, 10, 50);
}

TEST(StepListener, AnEndThatIsLeftBehindIsNotOfTheNextForward) {
  StepMarks marks;
  StepListener listener;
  listener.join(marks);
  listener.begin_step();
  marks.backward_ended(150);  // a step without forward
  marks.update_began(160);
  listener.begin_step();
  marks.forward_began(210);
  expect_cuts(listener, 200, 300, 10, -1);
  marks.update_began(250);
  expect_cuts(listener, 200, 300, 10, 50);
}

TEST(StepListener, LeavesOutOtherLoopsWaitsWhereTheyWere) {
  StepMarks marks;
  StepListener listener;
  listener.join(marks);
  listener.begin_step();
  listener.exclude(5);  // before forward
  marks.forward_began(120);
  marks.backward_ended(130);
  listener.exclude(7);  // between two backward passes: of neither gap nor tail
  marks.backward_ended(150);
  listener.exclude(11);  // behind the last one
  expect_cuts(listener, 100, 200, 15, 39);
}

TEST(StepListener, AnotherWholeLoopSpoilsTheStep) {
  StepMarks marks;
  StepListener listener;
  listener.join(marks);
  listener.begin_step();
  marks.forward_began(110);
  listener.disturb();
  expect_cuts(listener, 100, 200, -1, -1);
  listener.begin_step();
  marks.forward_began(220);
  expect_cuts(listener, 200, 300, 20, -1);
}

}  // namespace
}  // namespace headrace::metrics
