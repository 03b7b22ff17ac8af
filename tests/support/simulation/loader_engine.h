// What happens in a DataLoader, tick by tick.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "support/simulation/loader.h"

namespace headrace::simulation {

inline constexpr double kLoaderWindow_s = 0.1;

/// Work of one thread: time off the cores, then time on one.
struct Chunk {
  int part = -1;
  std::uint64_t item = 0;
  double sleep_s = 0;
  double cpu_s = 0;
};

/// What a recorder would have seen of one part in one worker.
struct PartSeen {
  double busy = 0, cpu = 0, run_queue = 0;
  std::vector<double> walls;
  std::vector<profile::ServiceSample> samples;
};

struct LoaderWorker {
  std::deque<int> indices;  // batches, its index queue
  std::deque<Chunk> work;   // of the batch it is at
  int batch = -1;
  double wall = 0, cpu = 0;  // of the chunk
  std::deque<int> sending;   // finished batches; the first is being pickled
  double send_cpu_left = 0, send_delay_left = 0;
  std::vector<PartSeen> parts;
  double blocked_out = 0;
  std::vector<double> index_time;  // at each level
};

struct LoaderSums {
  double start = 0, wait = 0, starved = 0, compute = 0, handoff = 0, cpu = 0;
  std::uint64_t steps = 0;
  std::vector<double> busy;  // per part
  std::vector<std::uint64_t> items;
  double results = 0;
};

/// In place of a part: the loader draws the next indices.
inline constexpr int kDrawing = -2;

/// One row of the ledger: what, and in which part (below 0: none).
struct LoaderCharge {
  std::string what;
  int part;
  double seconds;
};

struct LoaderHappened {
  std::vector<LoaderWorker> workers;
  std::vector<double> waits, computes;
  std::vector<LoaderCharge> ledger;
  std::vector<LoaderSums> windows;
  std::vector<double> result_time, reorder_time, pinned_time;  // at each level
  double now = 0, begin_s = 0, startup_s = 0, starved = 0, ready = 0, ready_wait = 0;
  double all_cpu = 0, main_cpu = 0, compute_cpu = 0, receive_wall = 0, pin_busy = 0, sampler_busy = 0;
  double receives = 0;
};

/// Runs the loader to its last step. With num_workers 0 the parts run in the training loop (one worker).
LoaderHappened happen(const DataLoader& loader, std::uint64_t seed);

}  // namespace headrace::simulation
