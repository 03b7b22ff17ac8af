#include "headrace/queues/eventcount.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace headrace::queues {

Wake EventCount::wait(Ticket ticket, Clock::time_point deadline) noexcept {
  Wake result = Wake::notified;
  while (epoch_.load(std::memory_order_seq_cst) == ticket) {
    timespec until{};
    const bool timed = deadline != Clock::time_point::max();
    if (timed) {
      const auto since_epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch());
      if (Clock::now() >= deadline) {
        result = Wake::timed_out;
        break;
      }
      until.tv_sec = since_epoch.count() / 1'000'000'000;
      until.tv_nsec = since_epoch.count() % 1'000'000'000;
    }
    // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, which steady_clock is on Linux.
    const long status = syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&epoch_),
                                FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, ticket, timed ? &until : nullptr, nullptr,
                                FUTEX_BITSET_MATCH_ANY);
    if (status == -1 && errno == EINTR) {
      result = Wake::interrupted;
      break;
    }
    if (status == -1 && errno == ETIMEDOUT) {
      result = Wake::timed_out;
      break;
    }
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  // A notification meant for one waiter must not die with one that gives up: it goes on to the next.
  if (result != Wake::notified && epoch_.load(std::memory_order_seq_cst) != ticket) wake(1);
  return result;
}

void EventCount::wake(int count) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&epoch_), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr,
          nullptr, 0);
}

}  // namespace headrace::queues
