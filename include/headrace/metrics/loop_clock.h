// Time during which the training loop runs: start-up and the pauses between epochs do not pass on it.
#pragma once

#include <atomic>
#include <cstdint>

namespace headrace::metrics {

/// One word in the segment. Queue levels, worker states and windows count this time instead of wall time, so
/// that start-up, validation pauses and an idle notebook are kept out of every share without any bookkeeping
/// later.
///
/// - Before the first batch of the first loop is delivered it runs from the opening of the session ("not
/// begun").
/// - `resume` at the first delivered batch begins it, at 0. Cells drop what they counted before (see
/// `Reading::begun`).
/// - `pause` at the end of the last active loop, `resume` at the first batch of the next one.
///
/// Writers of the clock are serialised by the session; readers are lock-free. Bits: 63 paused, 62 begun, the
/// rest is the frozen loop time while paused, else the offset to subtract from Clock::now_ns().
class LoopClock {
 public:
  struct Reading {
    std::int64_t loop_ns;
    bool begun;
    bool paused;
  };

  Reading read(std::int64_t now_ns) const noexcept {
    return decode(word_.load(std::memory_order_relaxed), now_ns);
  }

  /// Meaning of a stored word at `now_ns`.
  static Reading decode(std::uint64_t word, std::int64_t now_ns) noexcept {
    const auto value = static_cast<std::int64_t>(word & kValueMask);
    const bool paused = (word & kPaused) != 0;
    // Unsigned: a word read from a damaged file may hold anything, and must not overflow.
    std::int64_t loop_ns = paused ? value
                                  : static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns) -
                                                              static_cast<std::uint64_t>(value));
    if (loop_ns < 0) loop_ns = 0;
    return {loop_ns, (word & kBegun) != 0, paused};
  }

  std::uint64_t word() const noexcept { return word_.load(std::memory_order_relaxed); }

  void open(std::int64_t now_ns) noexcept { set(now_ns, false, false); }

  void resume(std::int64_t now_ns) noexcept {
    const Reading reading = read(now_ns);
    if (!reading.begun) {
      set(now_ns, false, true);
    } else if (reading.paused) {
      set(now_ns - reading.loop_ns, false, true);
    }
  }

  void pause(std::int64_t now_ns) noexcept {
    const Reading reading = read(now_ns);
    if (reading.begun && !reading.paused) set(reading.loop_ns, true, true);
  }

 private:
  static constexpr std::uint64_t kPaused = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kBegun = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kValueMask = kBegun - 1;

  void set(std::int64_t value, bool paused, bool begun) noexcept {
    word_.store((static_cast<std::uint64_t>(value < 0 ? 0 : value) & kValueMask) | (paused ? kPaused : 0) |
                    (begun ? kBegun : 0),
                std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> word_;
};

}  // namespace headrace::metrics
