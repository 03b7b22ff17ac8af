// A simulated item's time, by the resource it needs.
#pragma once

namespace headrace::analysis {

/// In so many turns work of several kinds is done, where nothing better is known.
inline constexpr int kTurns = 4;

/// Time off the cores, on one, and on one with the interpreter lock that threads of a process share.
struct Work {
  double off_s = 0;
  double cpu_s = 0;
  double locked_s = 0;

  double total_s() const noexcept { return off_s + cpu_s + locked_s; }
  Work& operator+=(const Work& other) noexcept {
    off_s += other.off_s;
    cpu_s += other.cpu_s;
    locked_s += other.locked_s;
    return *this;
  }
  Work operator*(double factor) const noexcept { return {off_s * factor, cpu_s * factor, locked_s * factor}; }
};

}  // namespace headrace::analysis
