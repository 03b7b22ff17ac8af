// Until when a call waits.
#pragma once

#include <chrono>

#include "headrace/queues/futex_word.h"

namespace headrace::queues {

using Deadline = FutexWord::Clock::time_point;

/// A call with this deadline waits until the queue ends.
inline constexpr Deadline kNever = Deadline::max();

/// `timeout` from now. Zero or less: has passed already, the call tries and does not wait. Too long for the
/// clock: never.
inline Deadline after(std::chrono::nanoseconds timeout) noexcept {
  const Deadline now = FutexWord::Clock::now();
  if (timeout.count() <= 0) return now;
  return timeout < kNever - now ? now + timeout : kNever;
}

}  // namespace headrace::queues
