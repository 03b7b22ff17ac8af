// How much of the machine others used meanwhile: a contest beside a compiler measures the compiler.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>

namespace headrace::bench {

/// From its making on. The kernel tells what all used in ticks (10 ms), so it is good for runs of some ticks.
class Strangers {
 public:
  /// The share of all cores that went to others, from 0 to 1.
  double share() const {
    const Spent now = spent();
    const double wall = now.wall_s - before_.wall_s;
    const double others = (now.all_s - before_.all_s) - (now.own_s - before_.own_s);
    return others <= 0 ? 0 : others / (wall * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
  }
  /// At most a tenth (and a tick that may be an error of rounding).
  bool quiet() const {
    const double wall = spent().wall_s - before_.wall_s;
    const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
    return share() <= 0.1 + tick / (wall * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
  }

 private:
  struct Spent {
    double all_s;
    double own_s;
    double wall_s;
  };
  static double clock_s(clockid_t id) {
    timespec time{};
    clock_gettime(id, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  static Spent spent() {
    std::ifstream stat("/proc/stat");
    std::string cpu;
    std::uint64_t user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft = 0, steal = 0;
    stat >> cpu >> user >> nice >> system >> idle >> io >> irq >> soft >> steal;
    const double ticks = static_cast<double>(user + nice + system + irq + soft + steal);
    return {ticks / static_cast<double>(sysconf(_SC_CLK_TCK)), clock_s(CLOCK_PROCESS_CPUTIME_ID),
            clock_s(CLOCK_MONOTONIC)};
  }

  const Spent before_ = spent();
};

}  // namespace headrace::bench
