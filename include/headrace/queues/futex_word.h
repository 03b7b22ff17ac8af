// A word in memory that threads can sleep on until it changes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace::queues {

/// Why a sleep on a word ended.
enum class Sleep { woken, changed, timed_out, interrupted };

/// 64 bits, of which the low 32 are what the kernel looks at. All accesses are sequentially consistent.
/// (EventCount takes it as a parameter, so that a test can put a scheduler of its own in its place.)
class FutexWord {
 public:
  using Clock = std::chrono::steady_clock;

  std::uint64_t load() const noexcept { return word_.load(std::memory_order_seq_cst); }
  std::uint64_t fetch_add(std::uint64_t by) noexcept {
    return word_.fetch_add(by, std::memory_order_seq_cst);
  }
  bool compare_exchange(std::uint64_t& expected, std::uint64_t desired) noexcept {
    return word_.compare_exchange_weak(expected, desired, std::memory_order_seq_cst);
  }
  void fence() const noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

  /// Sleeps while the low half is `low`, until woken, the deadline (max(): none) or a signal.
  Sleep sleep_while(std::uint32_t low, Clock::time_point deadline) noexcept;
  void wake(int most) noexcept;

 private:
  std::atomic<std::uint64_t> word_{0};
};

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
