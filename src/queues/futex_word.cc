#include "headrace/queues/futex_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <ctime>

namespace headrace::queues {

static_assert(std::endian::native == std::endian::little, "the low half is the word's first half");

Sleep FutexWord::sleep_while(std::uint32_t low, Clock::time_point deadline) noexcept {
  const bool timed = deadline != Clock::time_point::max();
  timespec until{};
  if (timed) {
    // The kernel refuses times before the clock's beginning; they have passed like any other.
    const std::int64_t at =
        std::max<std::int64_t>(0, std::chrono::nanoseconds(deadline.time_since_epoch()).count());
    until.tv_sec = at / 1'000'000'000;
    until.tv_nsec = at % 1'000'000'000;
  }
  // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, which steady_clock is on Linux.
  const long status = syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, low,
                              timed ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  if (status == 0) return Sleep::woken;
  if (errno == EINTR) return Sleep::interrupted;
  if (errno == ETIMEDOUT) return Sleep::timed_out;
  return Sleep::changed;
}

void FutexWord::wake(int most) noexcept {
  syscall(SYS_futex, &word_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, most, nullptr, nullptr, 0);
}

}  // namespace headrace::queues
