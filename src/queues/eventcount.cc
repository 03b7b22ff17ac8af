#include "headrace/queues/eventcount.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <ctime>

namespace headrace::queues {

static_assert(std::endian::native == std::endian::little, "the epoch is the word's first half");

std::uint32_t* EventCount::futex_word() noexcept { return reinterpret_cast<std::uint32_t*>(&state_); }

Wake EventCount::wait(Ticket ticket, Clock::time_point deadline) noexcept {
  const bool timed = deadline != Clock::time_point::max();
  while (epoch_of(state_.load(std::memory_order_seq_cst)) == ticket) {
    timespec until{};
    if (timed) {
      const auto since_epoch =
          std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch());
      until.tv_sec = since_epoch.count() / 1'000'000'000;
      until.tv_nsec = since_epoch.count() % 1'000'000'000;
    }
    // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, which steady_clock is on Linux.
    const long status = syscall(SYS_futex, futex_word(), FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, ticket,
                                timed ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (status == 0) return Wake::notified;
    if (errno == EINTR || errno == ETIMEDOUT) {
      const Wake result = errno == EINTR ? Wake::interrupted : Wake::timed_out;
      leave(ticket);
      return result;
    }
  }
  return Wake::notified;
}

void EventCount::wake(int count) noexcept {
  syscall(SYS_futex, futex_word(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
}

}  // namespace headrace::queues
