// What every kind promises, one thread at a time; the threads are in bounded_queue_test.cc.
#include "headrace/queues/queue_kind.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/queues/reorder_buffer.h"
#include "queues/kinds.h"

namespace headrace::queues {
namespace {

struct ThrowsWhenMoved {
  ThrowsWhenMoved(ThrowsWhenMoved&&) {}
};
static_assert(!kMovesSafely<ThrowsWhenMoved>);
static_assert(kMovesSafely<std::unique_ptr<int>>);
static_assert(QueueKind<MpmcRing<std::unique_ptr<int>>> && QueueKind<SpscQueue<std::unique_ptr<int>>> &&
              QueueKind<ReorderBuffer<std::unique_ptr<int>>> && QueueKind<TbbQueue<std::unique_ptr<int>>>);

template <class Kind>
class Kinds : public testing::Test {};
TYPED_TEST_SUITE(Kinds, FirstInFirstOut<std::unique_ptr<int>>);

template <class Kind>
QueueStatus push(Kind& kind, int value) {
  auto item = std::make_unique<int>(value);
  return kind.try_push(item).status;
}
template <class Kind>
int pop(Kind& kind) {
  std::optional<std::unique_ptr<int>> out;
  return kind.try_pop(out).status == QueueStatus::done ? **out : -1;
}

TYPED_TEST(Kinds, FirstInFirstOutOverManyLaps) {
  TypeParam kind(3, 4);
  int next = 0;
  int expected = 0;
  for (int lap = 0; lap < 50; ++lap) {
    for (int i = 0; i < 1 + lap % 3; ++i) ASSERT_EQ(push(kind, next++), QueueStatus::done);
    for (int i = 0; i < 1 + lap % 3; ++i) ASSERT_EQ(pop(kind), expected++);
  }
  EXPECT_EQ(pop(kind), -1);
}

TYPED_TEST(Kinds, HoldsItsCapacityToTheItemAndLeavesTheRefusedOneAlone) {
  for (const std::int64_t capacity : {1, 2, 3, 5, 64, 1000}) {
    TypeParam kind(capacity);
    for (std::int64_t i = 0; i < capacity; ++i) ASSERT_EQ(push(kind, static_cast<int>(i)), QueueStatus::done);
    auto refused = std::make_unique<int>(7);
    EXPECT_EQ(kind.try_push(refused).status, QueueStatus::not_now) << capacity;
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(*refused, 7);
    EXPECT_EQ(level_of(kind), capacity);
    EXPECT_EQ(pop(kind), 0);
    EXPECT_EQ(kind.try_push(refused).status, QueueStatus::done);
    EXPECT_EQ(refused, nullptr);
  }
}

TYPED_TEST(Kinds, CountsPutsAndGets) {
  TypeParam kind(2);
  push(kind, 1);
  push(kind, 2);
  push(kind, 3);  // no room: not counted
  pop(kind);
  EXPECT_EQ(kind.puts(), 2U);
  EXPECT_EQ(kind.gets(), 1U);
  EXPECT_EQ(level_of(kind), 1);
}

TYPED_TEST(Kinds, AnswersWithTheNumberOfThePutAndOfTheGet) {
  TypeParam kind(2);
  std::optional<std::unique_ptr<int>> out;
  for (std::uint64_t i = 0; i < 5; ++i) {
    auto item = std::make_unique<int>(0);
    EXPECT_EQ(kind.try_push(item).number, i);
    EXPECT_EQ(kind.try_pop(out).number, i);
  }
}

TYPED_TEST(Kinds, ClosedTakesNothingGivesWhatIsInsideAndThenSaysSo) {
  TypeParam kind(2);
  push(kind, 1);
  push(kind, 2);
  EXPECT_FALSE(kind.closed());
  kind.close();
  kind.close();
  EXPECT_TRUE(kind.closed());
  EXPECT_EQ(push(kind, 3), QueueStatus::closed);
  EXPECT_EQ(pop(kind), 1);
  EXPECT_EQ(push(kind, 3), QueueStatus::closed);
  EXPECT_EQ(pop(kind), 2);
  std::optional<std::unique_ptr<int>> out;
  EXPECT_EQ(kind.try_pop(out).status, QueueStatus::closed);
  EXPECT_EQ(kind.puts(), 2U);
}

TYPED_TEST(Kinds, CapacityGrowsAndShrinksWithItemsInside) {
  TypeParam kind(2, 8);
  push(kind, 0);
  push(kind, 1);
  EXPECT_EQ(push(kind, 2), QueueStatus::not_now);
  kind.set_capacity(4);
  EXPECT_EQ(kind.capacity(), 4);
  EXPECT_EQ(push(kind, 2), QueueStatus::done);
  EXPECT_EQ(push(kind, 3), QueueStatus::done);
  EXPECT_EQ(push(kind, 4), QueueStatus::not_now);
  kind.set_capacity(1);
  for (int expected = 0; expected < 4; ++expected) {
    EXPECT_EQ(push(kind, 9), QueueStatus::not_now);
    EXPECT_EQ(pop(kind), expected);
  }
  EXPECT_EQ(push(kind, 4), QueueStatus::done);
  EXPECT_EQ(push(kind, 5), QueueStatus::not_now);
}

TYPED_TEST(Kinds, ImpossibleCapacitiesAreUsageErrors) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t capacity :
       {std::int64_t{0}, std::int64_t{-1}, -kLargest, kMaxItems + 1, kLargest}) {
    EXPECT_THROW(TypeParam kind(capacity), UsageError) << capacity;
  }
  EXPECT_THROW(TypeParam(8, 4), UsageError);
  EXPECT_THROW(TypeParam(8, kLargest), UsageError);
  EXPECT_THROW(TypeParam(8, -1), UsageError);
  TypeParam kind(2, 4);
  EXPECT_EQ(kind.max_capacity(), 4);
  for (const std::int64_t capacity : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{5}, kLargest}) {
    EXPECT_THROW(kind.set_capacity(capacity), UsageError) << capacity;
  }
  EXPECT_EQ(kind.capacity(), 2);
}

template <class Kind>
class KindsOfLiveItems : public testing::Test {};
TYPED_TEST_SUITE(KindsOfLiveItems, FirstInFirstOut<Counted>);

TYPED_TEST(KindsOfLiveItems, DestroysWhatIsInside) {
  int alive = 0;
  {
    TypeParam kind(3, 4);
    std::optional<Counted> out;
    for (int i = 0; i < 10; ++i) {
      Counted item(i, &alive);
      ASSERT_EQ(kind.try_push(item).status, QueueStatus::done);
      if (i < 2) continue;
      ASSERT_EQ(kind.try_pop(out).status, QueueStatus::done);
    }
    out.reset();
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TYPED_TEST(KindsOfLiveItems, HandsOverOneObject) {
  int alive = 0;
  TypeParam kind(2);
  {
    Counted item(5, &alive);
    kind.try_push(item);
  }
  EXPECT_EQ(alive, 1);
  std::optional<Counted> out;
  kind.try_pop(out);
  EXPECT_EQ(out->value(), 5);
  out.reset();
  EXPECT_EQ(alive, 0);
}

TEST(CheckedCapacity, SaysWhatIsWrong) {
  try {
    checked_capacity(0, 16);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "a queue's capacity is at least 1 item, not 0");
  }
  try {
    checked_capacity(17, 16);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "a queue of capacity 17 is more than the 16 items it may hold");
  }
}

}  // namespace
}  // namespace headrace::queues
