#include "headrace/profile/remote_call.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "headrace/profile/probes.h"
#include "headrace/profile/snapshot.h"
#include "support/current_run.h"

namespace headrace::profile {
namespace {

class RemoteCalls : public CurrentRun {
 protected:
  Segment& segment() { return session_->segment(); }
  /// Requests by owner, as a reader sees them.
  std::int64_t answers(std::uint32_t owner, metrics::RemoteAnswer answer = metrics::RemoteAnswer::ok) {
    SegmentImage image;
    image.read_memory(segment().data(), segment().size());
    std::int64_t sum = 0;
    for (const metrics::RemoteCell& cell : image.remotes()) {
      if (cell.owner.load() == owner) sum += cell.answers[static_cast<std::size_t>(answer)].load();
    }
    return sum;
  }
  void run_loop() { segment().header().loop_clock.resume(metrics::Clock::now_ns()); }
  static void request(std::uint32_t owner, const char* target, int status = 200) {
    RemoteCall call(owner, target, false, 0);
    if (status != 0) call.answered(status);
    call.ended(10);
    call.ended(10);  // counts once
  }
};

TEST_F(RemoteCalls, AreTheOperatorsWhoseBodyRuns) {
  run_loop();
  OperatorHandle read("read", "map", 1);
  ASSERT_TRUE(read.begin());
  const std::uint32_t owner = remote_owner();
  EXPECT_EQ(owner, static_cast<std::uint32_t>(read.id_in(*session_)) + 1);
  request(owner, "a");
  request(owner, "a", 503);
  request(owner, "b", 0);
  // A thread that runs no operator works for the one that does.
  std::thread([&] { EXPECT_EQ(remote_owner(), owner); }).join();
  read.end(false);
  EXPECT_EQ(remote_owner(), metrics::RemoteCell::kOfNoOperator);
  EXPECT_EQ(answers(owner), 1);
  EXPECT_EQ(answers(owner, metrics::RemoteAnswer::unavailable), 1);
  EXPECT_EQ(answers(owner, metrics::RemoteAnswer::no_connection), 1);
}

TEST_F(RemoteCalls, OfStartUpAreNotCounted) {
  request(metrics::RemoteCell::kOfNoOperator, "a");
  EXPECT_EQ(answers(metrics::RemoteCell::kOfNoOperator), 0);
}

TEST_F(RemoteCalls, OfAKilledProcessLeaveNothingInFlight) {
  run_loop();
  const pid_t child = fork();
  if (child == 0) {
    auto* open = new RemoteCall(metrics::RemoteCell::kOfNoOperator, "a", false, 0);
    _exit(open == nullptr ? 1 : 0);
  }
  waitpid(child, nullptr, 0);
  request(metrics::RemoteCell::kOfNoOperator, "b");
  const auto& processes = segment().remote_traffic().flights.processes;
  EXPECT_EQ(processes[0].pid.load(), getpid());
  EXPECT_EQ(processes[0].waiting.read(0).open, 0);
}

TEST_F(RemoteCalls, SeeHowManyAreInFlight) {
  run_loop();
  constexpr std::uint32_t kOwner = metrics::RemoteCell::kOfNoOperator;
  {
    RemoteCall one(kOwner, "a", false, 0);
    RemoteCall other(kOwner, "b", false, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    one.answered(200);
    other.answered(200);
  }
  ASSERT_NE(session_->remote_cell(kOwner), nullptr);
  const auto& load = session_->remote_cell(kOwner)->load;
  EXPECT_EQ(load[1].answers.load(), 2);
}

}  // namespace
}  // namespace headrace::profile
