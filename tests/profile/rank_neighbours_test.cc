#include "headrace/profile/rank_neighbours.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "headrace/profile/run_folder.h"
#include "headrace/profile/session.h"
#include "profile/scratch_folder.h"
#include "support/times.h"

namespace headrace::profile {
namespace {

/// Two pipes, so that parent and child take turns.
class Turns {
 public:
  Turns() {
    if (pipe(to_child_.data()) != 0 || pipe(to_parent_.data()) != 0) std::abort();
  }
  void child_done() { pass(to_parent_[1]); }
  void wait_for_child() { take(to_parent_[0]); }
  void parent_done() { pass(to_child_[1]); }
  void wait_for_parent() { take(to_child_[0]); }

 private:
  static void pass(int fd) {
    const char mark = '.';
    if (write(fd, &mark, 1) != 1) std::abort();
  }
  static void take(int fd) {
    char mark = 0;
    if (read(fd, &mark, 1) != 1) std::abort();
  }
  std::array<int, 2> to_child_{};
  std::array<int, 2> to_parent_{};
};

TEST(RankNeighbours, AreEmptyWhileARunHasOneRank) {
  const ScratchFolder folder;
  const auto session = Session::open({folder / "run", 0});
  RankNeighbours neighbours;
  EXPECT_EQ(neighbours.cpu_ns(folder / "run", session->live_path(), 0), std::nullopt);
  EXPECT_EQ(neighbours.cpu_ns("", session->live_path(), 0), std::nullopt);
  EXPECT_EQ(neighbours.cpu_ns(folder / "missing", "", 10 * kSecond), std::nullopt);
}

TEST(RankNeighbours, CountWhatAnotherRankUsesSinceItWasSeen) {
  const ScratchFolder folder;
  Turns turns;
  const pid_t child = in_child([&] {
    const auto session = Session::open({folder / "run", 1});
    session->segment().host().live_tree_cpu_ns.store(5 * kSecond);
    turns.child_done();
    turns.wait_for_parent();
    session->segment().host().live_tree_cpu_ns.store(8 * kSecond);
    turns.child_done();
    turns.wait_for_parent();
  });
  turns.wait_for_child();
  RankNeighbours neighbours;
  EXPECT_EQ(neighbours.cpu_ns(folder / "run", "", kSecond), 0) << "what it used before counts for nobody";
  turns.parent_done();
  turns.wait_for_child();
  EXPECT_EQ(neighbours.cpu_ns(folder / "run", "", 2 * kSecond), 3 * kSecond);
  turns.parent_done();
  EXPECT_EQ(wait_for(child), 0);
  // A rank that is gone keeps what it used.
  EXPECT_EQ(neighbours.cpu_ns(folder / "run", "", 20 * kSecond), 3 * kSecond);
}

}  // namespace
}  // namespace headrace::profile
