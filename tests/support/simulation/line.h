// A pipeline of threads and bounded queues in virtual time, and the Profile that recording it would give.
//
// Time advances in steps of 0.1 ms: sleeping needs nothing, C work needs a share of a core, pure Python work
// needs the one interpreter lock (5 ms turns) and a core. So every figure of a Profile is consistent with
// every other.
//
//     Line line{.stages = {{.name = "read", .sleep_s = 0.01}, {.name = "decode", .cpu_s = 0.04}}, .compute_s
//     = 0.03}; profile::Profile recorded = simulate(line, /*seed=*/7);
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::simulation {

using Random = std::mt19937_64;
/// Multiplies one item's service; gets the item's number.
using Factor = std::function<double(std::uint64_t item, Random& random)>;

/// Around 1 by +- `spread`, evenly.
Factor jitter(double spread);
Factor exponential();
/// Around 1 with that standard deviation, never below 0.05.
Factor normal(double deviation);
/// `share` of the items take `times` as long, drawn at random.
Factor rare(double share, double times);
/// Item `at` takes `times` as long, once.
Factor once(std::uint64_t at, double times);
/// `slow` for `length` items, then `fast` for as many, and so on; `fast_first` turns it round.
Factor in_turn(std::uint64_t length, double slow, double fast, bool fast_first);

struct Stage {
  std::string name;
  std::string kind = "map";
  int workers = 1;
  double sleep_s = 0;  ///< per call, mean
  double cpu_s = 0;
  bool python = false;    ///< its CPU work holds the interpreter lock
  bool process = false;   ///< its workers are processes
  int take = 1;           ///< items taken per item made
  int capacity = 2;       ///< of the queue after it
  int prefilled = 0;      ///< items in that queue when the loop starts
  bool ordered = false;   ///< delivers in the order of its input
  bool parameter = true;  ///< has a worker parameter
  Factor factor = jitter(0.1);
  std::vector<double> worker_times{};  ///< per worker, multiplies its service
};

struct Line {
  std::vector<Stage> stages;
  double compute_s = 0.01;   ///< the sink's step
  double compute_cpu_s = 0;  ///< of that, on a core
  bool compute_python = false;
  Factor compute_factor = jitter(0.02);
  int steps = 150;
  int cores = 2;
  double foreign_cores = 0;  ///< taken by others
  double first_item_s = 0;   ///< start-up of the source, beside everything else
  bool in_sink = false;      ///< no queues: the stages run inside GetNext
  bool probe_lock = true;
  bool look_at_threads = true;  ///< that wait for the interpreter lock
  bool quiet_known = false;     ///< some steps ran while no worker was busy
  double hiccups = 0;           ///< share of items that take 5 to 40 ms more, as on a busy machine
};

profile::Profile simulate(const Line& line, std::uint64_t seed);

/// The same as a recorder under worse conditions gives it: sampled CPU, histogram quantiles within 1/16,
/// short sequences, a coarse lock probe, and often no ledger.
profile::Profile blurred(profile::Profile profile, std::uint64_t seed);

}  // namespace headrace::simulation
