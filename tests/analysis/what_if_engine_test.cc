// Virtual time and shared cores, against results that can be worked out by hand.
#include <gtest/gtest.h>

#include "headrace/analysis/simulate/engine.h"

namespace headrace::analysis {
namespace {

TEST(Engine, NothingUnderWayIsSaid) {
  Engine engine(2);
  EXPECT_LT(engine.next(), 0);
  EXPECT_EQ(engine.now(), 0);
}

TEST(Engine, SleepersNeedNoCore) {
  Engine engine(1);
  engine.sleep(7, 0.020);
  engine.sleep(3, 0.010);
  EXPECT_EQ(engine.next(), 3);
  EXPECT_DOUBLE_EQ(engine.now(), 0.010);
  EXPECT_EQ(engine.next(), 7);
  EXPECT_DOUBLE_EQ(engine.now(), 0.020);
  EXPECT_EQ(engine.computed_s(), 0);
}

TEST(Engine, AsManyAsCoresSlowEachOtherALittle) {
  Engine engine(2);
  engine.compute(0, 0.010);
  engine.compute(1, 0.030);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_DOUBLE_EQ(engine.now(), 1.08 * 0.010);
  EXPECT_EQ(engine.next(), 1);
  EXPECT_DOUBLE_EQ(engine.now(), 1.08 * 0.010 + 0.020);  // the rest of it alone
}

TEST(Engine, MoreThanCoresShareThemEvenly) {
  Engine engine(2);
  for (int actor = 0; actor < 3; ++actor) engine.compute(actor, 0.010);
  for (int actor = 0; actor < 3; ++actor) EXPECT_EQ(engine.next(), actor);
  EXPECT_NEAR(engine.now(), 1.08 * 0.015, 1e-12);
  EXPECT_NEAR(engine.computed_s(), 1.08 * 0.030, 1e-12);
}

TEST(Engine, WhoComesLaterSharesFromThenOn) {
  Engine engine(1);
  engine.compute(0, 0.010);
  engine.sleep(1, 0.004);
  EXPECT_EQ(engine.next(), 1);
  engine.compute(1, 0.002);  // 6 ms are left of 0's: 2 x 2 ms together, then 4 ms alone
  EXPECT_EQ(engine.next(), 1);
  EXPECT_NEAR(engine.now(), 0.008, 1e-12);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_NEAR(engine.now(), 0.012, 1e-12);
}

TEST(Engine, PartOfACoreIsEnough) {
  Engine engine(0.5);
  engine.compute(0, 0.010);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_NEAR(engine.now(), 0.020, 1e-12);
}

TEST(Engine, HoldersOfTheLockRunOneAtATime) {
  Engine engine(4);
  engine.compute_locked(0, 0.010);
  engine.compute_locked(1, 0.010);
  engine.compute(2, 0.010);
  const double beside_one = (1 + 0.08 / 3) * 0.010;  // one of the three other cores is busy
  EXPECT_EQ(engine.next(), 2);
  EXPECT_NEAR(engine.now(), beside_one, 1e-12);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_EQ(engine.next(), 1);
  EXPECT_NEAR(engine.now(), beside_one + 0.010, 1e-12);
  EXPECT_NEAR(engine.locked_s(), beside_one + 0.010, 1e-12);
  EXPECT_NEAR(engine.computed_s(), 2 * beside_one + 0.010, 1e-12);
}

TEST(Engine, HoldersOfTheLockShareACoreWithOthers) {
  Engine engine(1);
  engine.compute_locked(0, 0.010);
  engine.compute_locked(1, 0.010);
  engine.compute(2, 0.010);  // half of the core; the other half is for whoever holds the lock
  EXPECT_EQ(engine.next(), 2);
  EXPECT_NEAR(engine.now(), 0.020, 1e-12);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_NEAR(engine.now(), 0.025, 1e-12);  // the lock went to and fro every 5 ms
  EXPECT_EQ(engine.next(), 1);
  EXPECT_NEAR(engine.now(), 0.030, 1e-12);
}

TEST(Engine, AMomentUnderTheLockWaitsForTheSwitchInterval) {
  Engine engine(1e9);  // cores enough that nobody slows anybody down
  engine.compute_locked(0, 0.050);
  engine.sleep(1, 0.010);
  EXPECT_EQ(engine.next(), 1);
  engine.compute_locked(1, 0.001);
  EXPECT_EQ(engine.next(), 1);
  EXPECT_NEAR(engine.now(), 0.010 + kSwitchInterval_s + 0.001, 1e-9);
  EXPECT_NEAR(engine.lock_wait_s(1), kSwitchInterval_s, 1e-9);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_NEAR(engine.now(), 0.051, 1e-9);
  EXPECT_NEAR(engine.lock_wait_s(0), 0.001, 1e-9);
  EXPECT_EQ(engine.lock_wait_s(2), 0);
}

TEST(Engine, EachChangeOfHandsBeginsTheIntervalAnew) {
  Engine engine(1e9);
  engine.compute_locked(0, 0.004);
  engine.compute_locked(1, 0.006);
  engine.compute_locked(2, 0.001);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_EQ(engine.next(), 2);  // 1 had the lock from 4 to 9 ms
  EXPECT_NEAR(engine.now(), 0.010, 1e-9);
  EXPECT_EQ(engine.next(), 1);
  EXPECT_NEAR(engine.now(), 0.011, 1e-9);
}

TEST(Engine, APoolComputesOnAllCores) {
  Engine engine(2);
  engine.sleep(0, 0.001);
  engine.compute_in_pool(0.020);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_TRUE(engine.pool_computes());
  engine.await_pool(0);
  EXPECT_EQ(engine.next(), 0);
  EXPECT_FALSE(engine.pool_computes());
  EXPECT_NEAR(engine.now(), 1.08 * 0.010, 1e-12);
  EXPECT_LT(engine.next(), 0);
}

TEST(Engine, NobodyIsToldOfAPoolThatNobodyAwaits) {
  Engine engine(1);
  engine.compute_in_pool(0.010);
  engine.sleep(3, 0.030);
  EXPECT_EQ(engine.next(), 3);
  EXPECT_NEAR(engine.now(), 0.030, 1e-12);
}

}  // namespace
}  // namespace headrace::analysis
