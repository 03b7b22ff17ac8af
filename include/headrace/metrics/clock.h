// The time stamp behind every figure: one clock read per transition.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace headrace::metrics {

__extension__ using uint128 = unsigned __int128;

/// How ticks of the time stamp counter become nanoseconds of CLOCK_MONOTONIC. Stored in the segment, so that
/// every process of a run stamps on the same line.
struct ClockCalibration {
  std::uint64_t base_ticks = 0;
  std::int64_t base_ns = 0;
  std::uint64_t ns_per_tick_q32 = 0;  ///< fixed point, 32 fractional bits
  std::uint32_t uses_tsc = 0;         ///< 0: CLOCK_MONOTONIC is read directly
  std::uint32_t reserved = 0;
};

struct ClockMoment {
  std::int64_t now_ns = 0;       ///< Clock::now_ns()
  std::int64_t realtime_ns = 0;  ///< CLOCK_REALTIME
};

/// Nanoseconds that never run backwards on one machine and can be compared between its processes.
///
/// Costs about 11 ns with an invariant time stamp counter (23 ns through CLOCK_MONOTONIC elsewhere). Until
/// `calibrate` or `adopt` has run, CLOCK_MONOTONIC is read. Thread-safe.
class Clock {
 public:
  static std::int64_t now_ns() noexcept {
#if defined(__x86_64__)
    if (calibration_.uses_tsc != 0) {
      const auto ticks = static_cast<uint128>(__rdtsc() - calibration_.base_ticks);
      return calibration_.base_ns + static_cast<std::int64_t>((ticks * calibration_.ns_per_tick_q32) >> 32);
    }
#endif
    return monotonic_ns();
  }

  static std::int64_t monotonic_ns() noexcept { return read(CLOCK_MONOTONIC); }
  static std::int64_t realtime_ns() noexcept { return read(CLOCK_REALTIME); }
  /// Both clocks at one moment, as close as possible: within a microsecond unless every one of several
  /// tries is interrupted.
  static ClockMoment moment() noexcept;
  /// CPU time of the calling thread. A system call of about 250 ns: sample it.
  static std::int64_t thread_cpu_ns() noexcept { return read(CLOCK_THREAD_CPUTIME_ID); }
  /// CPU time of all threads of the process, those that have ended included. A system call: sample it.
  static std::int64_t process_cpu_ns() noexcept { return read(CLOCK_PROCESS_CPUTIME_ID); }

  /// Calibrates the counter against CLOCK_MONOTONIC for 10 ms (rate within 0.04 ppm), once per process; later
  /// calls return at once. Falls back to CLOCK_MONOTONIC where the counter is not invariant.
  static const ClockCalibration& calibrate() noexcept;

  /// Takes over the calibration of the run this process joins, unless it already has one of its own.
  static void adopt(const ClockCalibration& calibration) noexcept;

  /// For tests of this process: while time is virtual, all clocks here pass by `advance` alone, from the
  /// present moment on, and the background thread samples nothing. A recording must begin and end within it:
  /// real time afterwards may be earlier.
  static void set_virtual(bool is_virtual) noexcept;
  static bool is_virtual() noexcept { return virtual_.load(std::memory_order_relaxed); }
  /// Lets virtual time pass; for `cpu_ns` of it the calling thread computes.
  static void advance(std::int64_t ns, std::int64_t cpu_ns) noexcept;

 private:
  static std::int64_t read(clockid_t id) noexcept { return is_virtual() ? read_virtual(id) : read_real(id); }
  static std::int64_t read_virtual(clockid_t id) noexcept;
  static std::int64_t read_real(clockid_t id) noexcept {
    timespec time{};
    clock_gettime(id, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  }

  static ClockCalibration calibration_;
  static std::atomic<bool> virtual_;
};

}  // namespace headrace::metrics
