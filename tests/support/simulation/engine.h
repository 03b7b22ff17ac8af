// What happens in a line, tick by tick: threads take turns at the cores, at the interpreter lock and at the
// queues.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "support/simulation/line.h"

namespace headrace::simulation {

inline constexpr double kTick_s = 1e-4;
inline constexpr double kWindow_s = 0.1;

/// One thread: a worker of a stage, or the sink.
struct Thread {
  enum class State { kWantsInput, kWorks, kWantsOutput, kDone };
  int stage = -1;  // below 0: the sink
  int number = 0;
  State state = State::kWantsInput;
  std::uint64_t item = 0;
  int taken = 0;
  double sleep_left = 0;
  double cpu_left = 0;
  double held_s = 0;  // of its turn at the lock
  double item_wall = 0;
  double item_cpu = 0;
  bool was_ready = false;
  // recorded
  double busy = 0, in = 0, out = 0, cpu = 0, run_queue = 0, lock_wait = 0, lock_held = 0;
  std::vector<double> walls;
  std::vector<profile::ServiceSample> samples;
};

/// A bounded queue.
struct Queue {
  double level = 0;
  int capacity = 2;
  std::vector<double> time;  // at each level
  double mean_time = 0;
};

/// One window.
struct Sums {
  double start = 0, wait = 0, starved = 0, compute = 0;
  std::uint64_t steps = 0;
  std::vector<double> busy;
  std::vector<std::uint64_t> items;
  std::vector<double> level, empty, full;
  double cpu = 0;
};

/// All that a recorder would have seen, from the first batch on.
struct Happened {
  std::vector<Thread> threads;  // the sink last
  std::vector<Queue> queues;    // one behind each stage
  std::vector<double> ledger;   // wait charged to each stage; the last one: to none
  std::vector<Sums> windows;
  std::vector<double> waits, computes;
  double now = 0, begin_s = 0, startup_s = 0, starved = 0, ready = 0, ready_wait = 0;
  double process_cpu = 0, all_cpu = 0;
  int probes = 0, probes_taken = 0;  // of the interpreter lock
};

/// Runs the line to its last step.
Happened happen(const Line& line, std::uint64_t seed);

}  // namespace headrace::simulation
