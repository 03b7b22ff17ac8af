#include "headrace/queues/reorder_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "queues/kinds.h"

namespace headrace::queues {
namespace {

QueueStatus put_number(ReorderBuffer<int>& buffer, std::uint64_t number) {
  Numbered<int> item{number, static_cast<int>(number) * 10};
  return buffer.try_push(item).status;
}
/// The next item's number; -1: not there yet, -2: closed.
int take_number(ReorderBuffer<int>& buffer) {
  std::optional<Numbered<int>> out;
  const QueueStatus status = buffer.try_pop(out).status;
  if (status != QueueStatus::done) return status == QueueStatus::closed ? -2 : -1;
  EXPECT_EQ(out->item, static_cast<int>(out->number) * 10);
  return static_cast<int>(out->number);
}

TEST(ReorderBuffer, ItemsLeaveByNumberHoweverTheyCome) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    ReorderBuffer<int> buffer(8);
    std::vector<std::uint64_t> numbers(8);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::shuffle(numbers.begin(), numbers.end(), random);
    for (const std::uint64_t number : numbers) ASSERT_EQ(put_number(buffer, number), QueueStatus::done);
    for (int expected = 0; expected < 8; ++expected) ASSERT_EQ(take_number(buffer), expected);
    ASSERT_EQ(take_number(buffer), -1);
  }
}

TEST(ReorderBuffer, TheAwaitedNumberAlwaysHasRoomAndNoneBeyondTheWindow) {
  ReorderBuffer<int> buffer(3, 4);
  EXPECT_EQ(put_number(buffer, 2), QueueStatus::done);
  EXPECT_EQ(put_number(buffer, 1), QueueStatus::done);
  EXPECT_EQ(put_number(buffer, 3), QueueStatus::not_now);
  EXPECT_EQ(take_number(buffer), -1);
  EXPECT_EQ(put_number(buffer, 0), QueueStatus::done);
  EXPECT_EQ(take_number(buffer), 0);
  EXPECT_EQ(put_number(buffer, 3), QueueStatus::done);
  EXPECT_EQ(put_number(buffer, 4), QueueStatus::not_now);
}

TEST(ReorderBuffer, ANumberThatComesTwiceIsAUsageError) {
  ReorderBuffer<int> buffer(4);
  EXPECT_EQ(put_number(buffer, 1), QueueStatus::done);
  EXPECT_THROW(put_number(buffer, 1), UsageError);
  EXPECT_EQ(put_number(buffer, 0), QueueStatus::done);
  EXPECT_EQ(take_number(buffer), 0);
  EXPECT_THROW(put_number(buffer, 0), UsageError);
  EXPECT_EQ(take_number(buffer), 1);
  EXPECT_EQ(buffer.puts(), 2U);
}

TEST(ReorderBuffer, ANumberBelowZeroIsAUsageError) {
  ReorderBuffer<int> buffer(4);
  for (const std::int64_t number : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    Numbered<int> item{static_cast<std::uint64_t>(number), 0};
    EXPECT_THROW(buffer.try_push(item), UsageError);
  }
  EXPECT_EQ(buffer.puts(), 0U);
}

TEST(ReorderBuffer, OnceClosedMissingNumbersArePassedOver) {
  ReorderBuffer<int> buffer(8);
  for (const std::uint64_t number : {1U, 4U, 5U}) put_number(buffer, number);
  EXPECT_EQ(take_number(buffer), -1);
  buffer.close();
  EXPECT_EQ(put_number(buffer, 0), QueueStatus::closed);
  EXPECT_EQ(take_number(buffer), 1);
  EXPECT_EQ(take_number(buffer), 4);
  EXPECT_EQ(take_number(buffer), 5);
  EXPECT_EQ(take_number(buffer), -2);
}

TEST(ReorderBuffer, WindowCanBeChanged) {
  ReorderBuffer<int> buffer(1, 4);
  EXPECT_EQ(put_number(buffer, 1), QueueStatus::not_now);
  buffer.set_capacity(2);
  EXPECT_EQ(put_number(buffer, 1), QueueStatus::done);
  EXPECT_THROW(buffer.set_capacity(5), UsageError);
  EXPECT_THROW(ReorderBuffer<int>(0), UsageError);
}

TEST(ReorderBuffer, DestroysWhatIsInside) {
  int alive = 0;
  {
    ReorderBuffer<Counted> buffer(4);
    for (const std::uint64_t number : {3U, 1U, 0U}) {
      Numbered<Counted> item{number, Counted(0, &alive)};
      buffer.try_push(item);
    }
    std::optional<Numbered<Counted>> out;
    EXPECT_EQ(buffer.try_pop(out).status, QueueStatus::done);
    out.reset();
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace headrace::queues
