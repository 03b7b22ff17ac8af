#include "headrace/profile/background_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>

#include "headrace/profile/process_identity.h"

namespace headrace::profile {
namespace {

/// As the kernel counts them.
std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(BackgroundThread, IsNotCountedAfterJoin) {
  BackgroundThread first;  // with the first thread of a process ThreadSanitizer starts one of its own
  ASSERT_TRUE(first.start("test", [] {}));
  first.join();
  const std::ptrdiff_t before = threads_of_process();
  for (int i = 0; i < 200; ++i) {
    BackgroundThread thread;
    ASSERT_TRUE(thread.start("test", [] {}));
    thread.join();
    ASSERT_EQ(threads_of_process(), before);
  }
}

TEST(BackgroundThread, CanStartAgain) {
  std::atomic<int> runs{0};
  BackgroundThread thread;
  thread.join();  // none has been started
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(thread.start("test", [&] { ++runs; }));
    thread.join();
  }
  EXPECT_EQ(runs, 3);
}

TEST(BackgroundThread, TakesNoSignals) {
  sigset_t blocked;
  sigemptyset(&blocked);
  BackgroundThread thread;
  ASSERT_TRUE(thread.start("test", [&] { pthread_sigmask(SIG_BLOCK, nullptr, &blocked); }));
  thread.join();
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGINT), 0);
}

TEST(BackgroundThread, AwaitsNothingWhereThereIsNoThread) { await_thread_end(current_pid() + (1 << 23)); }

}  // namespace
}  // namespace headrace::profile
