// What a look at a thread tells about the lock that it waits for.
#include "headrace/profile/awaited_futex.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace headrace::profile {
namespace {

TEST(AwaitedFutex, IsTheFirstArgumentOfTheCall) {
  const std::string call =
      std::to_string(SYS_futex) + " 0x7f00deadbeef 0x189 0x0 0x0 0x0 0x0 0x7ffc 0x7f01\n";
  const ThreadLook look = parse_syscall(call);
  EXPECT_TRUE(look.known);
  EXPECT_EQ(look.futex, 0x7f00deadbeefU);
}

TEST(AwaitedFutex, AThreadThatRunsOrWaitsForSomethingElseAwaitsNone) {
  EXPECT_TRUE(parse_syscall("running\n").known);
  EXPECT_TRUE(parse_syscall("running\n").runs);
  EXPECT_FALSE(parse_syscall("7 0x7f00deadbeef 0x1 0x0\n").runs);
  EXPECT_EQ(parse_syscall("running\n").futex, 0U);
  EXPECT_TRUE(parse_syscall("7 0x7f00deadbeef 0x1 0x0\n").known);
  EXPECT_EQ(parse_syscall(std::to_string(SYS_poll) + " 0x7f00 0x1\n").futex, 0U);
  EXPECT_FALSE(parse_syscall("").known);
  EXPECT_FALSE(parse_syscall("nonsense").known);
  EXPECT_EQ(parse_syscall(std::to_string(SYS_futex) + " 0x").futex, 0U);
}

TEST(AwaitedFutex, IsSeenInAThreadThatWaits) {
  std::atomic<int> word{0};
  std::atomic<int> tid{0};
  std::thread waiter([&] {
    tid.store(static_cast<int>(syscall(SYS_gettid)));
    while (word.load() == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  });
  while (tid.load() == 0) std::this_thread::yield();
  AwaitedFutex awaited(tid.load());
  ThreadLook look;
  for (int tries = 0; tries < 2000 && look.futex == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    look = awaited.look();
    if (!look.known) break;
  }
  word.store(1);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  waiter.join();
  if (!look.known) GTEST_SKIP() << "this kernel does not say what a thread waits for";
  EXPECT_EQ(look.futex, reinterpret_cast<std::uintptr_t>(&word));
  // The kernel removes its entry a little after it can be joined.
  for (int tries = 0; tries < 2000 && awaited.look().known; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(awaited.look().known);
}

}  // namespace
}  // namespace headrace::profile
