#include "headrace/metrics/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <limits>
#include <mutex>
#include <utility>

namespace headrace::metrics {

ClockCalibration Clock::calibration_;
std::atomic<bool> Clock::virtual_ = false;

namespace {

std::mutex calibration_mutex;
bool calibrated = false;

std::atomic<std::int64_t> virtual_ns = 0;
std::atomic<std::int64_t> virtual_process_cpu_ns = 0;
thread_local std::int64_t virtual_thread_cpu_ns = 0;
std::int64_t virtual_realtime_ahead_ns = 0;
std::uint32_t other_time_uses_tsc = 0;  ///< of real time while time is virtual, else 0

#if defined(__x86_64__)

struct Sandwich {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;
};

bool counter_is_invariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  // Leaf 0x80000007, EDX bit 8: the counter runs at one rate in every power state.
  return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}

/// The tightest of many counter-clock-counter readings: an interrupt in between only makes a reading wider.
Sandwich tightest_reading() {
  Sandwich best;
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t before = __rdtsc();
    const std::int64_t ns = Clock::monotonic_ns();
    const std::uint64_t after = __rdtsc();
    if (after >= before && after - before < best_width) {
      best_width = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

ClockCalibration measure() {
  ClockCalibration result;
  if (!counter_is_invariant()) return result;
  constexpr std::int64_t kSpan = 10'000'000;
  const Sandwich first = tightest_reading();
  timespec pause{0, kSpan};
  nanosleep(&pause, nullptr);
  const Sandwich last = tightest_reading();
  if (last.ticks <= first.ticks || last.ns - first.ns < kSpan / 2) return result;
  const auto ns_q32 = static_cast<uint128>(last.ns - first.ns) << 32;
  result.ns_per_tick_q32 = static_cast<std::uint64_t>(ns_q32 / (last.ticks - first.ticks));
  result.base_ticks = first.ticks;
  result.base_ns = first.ns;
  result.uses_tsc = 1;
  return result;
}

#else

ClockCalibration measure() { return {}; }

#endif

}  // namespace

const ClockCalibration& Clock::calibrate() noexcept {
  const std::scoped_lock lock(calibration_mutex);
  if (!calibrated) {
    calibration_ = measure();
    calibrated = true;
  }
  return calibration_;
}

ClockMoment Clock::moment() noexcept {
  constexpr int kTries = 16;
  constexpr std::int64_t kClose = 1000;
  ClockMoment best;
  std::int64_t best_width = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries && best_width > kClose; ++i) {
    const std::int64_t before = now_ns();
    const std::int64_t realtime = realtime_ns();
    const std::int64_t width = now_ns() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {before + width / 2, realtime};
  }
  return best;
}

void Clock::adopt(const ClockCalibration& calibration) noexcept {
  const std::scoped_lock lock(calibration_mutex);
  if (calibrated) return;
#if defined(__x86_64__)
  if (calibration.uses_tsc != 0 && counter_is_invariant() && calibration.ns_per_tick_q32 != 0) {
    calibration_ = calibration;
  }
#endif
  calibrated = true;
}

void Clock::set_virtual(bool is_virtual) noexcept {
  calibrate();
  const std::scoped_lock lock(calibration_mutex);
  if (is_virtual == virtual_.load()) return;
  if (is_virtual) {
    const ClockMoment began = moment();
    virtual_ns.store(began.now_ns);
    virtual_realtime_ahead_ns = began.realtime_ns - began.now_ns;
  }
  virtual_.store(is_virtual);
  // Without a counter now_ns() asks read(), so that it costs nothing more with one.
  std::swap(calibration_.uses_tsc, other_time_uses_tsc);
}

void Clock::advance(std::int64_t ns, std::int64_t cpu_ns) noexcept {
  virtual_thread_cpu_ns += cpu_ns;
  virtual_process_cpu_ns.fetch_add(cpu_ns);
  virtual_ns.fetch_add(ns);
}

std::int64_t Clock::read_virtual(clockid_t id) noexcept {
  if (id == CLOCK_THREAD_CPUTIME_ID) return virtual_thread_cpu_ns;
  if (id == CLOCK_PROCESS_CPUTIME_ID) return virtual_process_cpu_ns.load();
  return virtual_ns.load() + (id == CLOCK_REALTIME ? virtual_realtime_ahead_ns : 0);
}

}  // namespace headrace::metrics
