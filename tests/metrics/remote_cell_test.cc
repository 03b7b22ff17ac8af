#include "headrace/metrics/remote_cell.h"

#include <gtest/gtest.h>

#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

TEST(RemoteCell, KeepsAnswersByStatus) {
  Zeroed<RemoteCell> cell;
  for (const int status : {200, 206, 304, 404, 429, 500, 503, 0})
    cell->add({.began_ns = 100, .first_byte_ns = 150, .ended_ns = 200, .bytes = 7, .status = status}, true);
  const auto count = [&](RemoteAnswer answer) {
    return cell->answers[static_cast<std::size_t>(answer)].load();
  };
  EXPECT_EQ(count(RemoteAnswer::ok), 2);
  for (const RemoteAnswer one :
       {RemoteAnswer::redirect, RemoteAnswer::client_error, RemoteAnswer::too_many,
        RemoteAnswer::server_error, RemoteAnswer::unavailable, RemoteAnswer::no_connection})
    EXPECT_EQ(count(one), 1);
  EXPECT_EQ(cell->first_byte_ns.load(), 100);  // of the two that were answered
  EXPECT_EQ(cell->transfer_ns.load(), 100);
  EXPECT_EQ(cell->refused_ns.load(), 600);
  EXPECT_EQ(cell->latency.sum_ns.load(), 200);
}

TEST(RemoteCell, StartUpSaysOnlyHowTimesDependOnLoad) {
  Zeroed<RemoteCell> cell;
  cell->add({.began_ns = 0,
             .first_byte_ns = 50,
             .ended_ns = 80,
             .bytes = 7,
             .status = 200,
             .waiting = 2.9,
             .transferring = 1},
            false);
  EXPECT_EQ(cell->bytes.load(), 0);
  EXPECT_EQ(cell->latency.sum_ns.load(), 0);
  EXPECT_EQ(cell->load[2].answers.load(), 1);
  EXPECT_EQ(cell->load[2].waiting_milli.load(), 2900);
  EXPECT_EQ(cell->load[0].transfer_ns.load(), 30);
}

TEST(OpenTime, AddsUpWhatIsOpen) {
  OpenTime open{};
  open.begin(1000);
  open.begin(1500);
  EXPECT_EQ(open.read(2000).open, 2);
  EXPECT_EQ(open.read(2000).open_us, 1000 + 500);
  open.end(2000);
  EXPECT_EQ(open.read(2600).open, 1);
  EXPECT_EQ(open.read(2600).open_us, 1500 + 600);
  open.end(3000);
  EXPECT_EQ(open.read(9000).open, 0);
  EXPECT_EQ(open.read(9000).open_us, 2500);
}

TEST(OpenTime, HoldsForALongRun) {
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600 * 1'000'000;
  OpenTime open{};
  for (int i = 0; i < 64; ++i) open.begin(kWeek);
  EXPECT_EQ(open.read(2 * kWeek).open, 64);
  EXPECT_EQ(open.read(2 * kWeek).open_us, 64.0 * kWeek);
  for (int i = 0; i < 64; ++i) open.end(2 * kWeek);
  EXPECT_EQ(open.read(2 * kWeek).open, 0);
}

TEST(SeenObjects, RemembersWhatItMarked) {
  Zeroed<SeenObjects> seen;
  EXPECT_FALSE(seen->mark(0x123456789abcdef0));
  EXPECT_TRUE(seen->mark(0x123456789abcdef0));
  EXPECT_FALSE(seen->mark(0xfedcba9876543210));
}

}  // namespace
}  // namespace headrace::metrics
