// A PyTorch DataLoader in virtual time, and the Profile that recording it would give.
//
// Its rules are written down here a second time, by ticks instead of events, so that a prediction is never
// tested against the code that made it. Workers get indices round-robin, at most prefetch_factor x
// num_workers batches are on their way until they are yielded, each worker's sending thread pickles and
// sends, and the training loop receives one message at a time.
//
//     DataLoader loader{.parts = {{.name = "Images", .cpu_s = 4e-3}, {.name = "collate", .per_batch = true}},
//     .num_workers = 2, .compute_s = 0.01}; profile::Profile recorded = simulate(loader, /*seed=*/7);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"
#include "support/simulation/line.h"

namespace headrace::simulation {

/// The dataset (first), a transform, or the collate (last, per_batch).
struct Part {
  std::string name;
  double sleep_s = 0;  ///< per call, mean
  double cpu_s = 0;
  bool per_batch = false;
  Factor factor = jitter(0.1);
};

struct DataLoader {
  std::vector<Part> parts;
  int num_workers = 2;
  int prefetch_factor = 2;
  int batch_size = 8;
  bool in_order = true;
  bool stream = false;
  bool persistent_workers = false;
  bool python = false;  ///< its parts hold their process's interpreter lock: what they finished waits for it
  std::vector<double> worker_times{};  ///< per worker, multiplies its services

  double compute_s = 0.01;  ///< the training step
  double compute_cpu_s = 0;
  double copy_s = 0;  ///< of the step: the copy to the device
  Factor compute_factor = jitter(0.02);
  int steps = 150;

  double sampler_s = 0;             ///< CPU in the training loop, per batch
  double pickle_cpu_s = 2e-4;       ///< in the worker's sending thread
  double receive_cpu_s = 7e-4;      ///< in the training loop, or in the thread that pins
  double receive_latency_s = 3e-4;  ///< not on a core
  double pin_s = 0;                 ///< per batch; above 0: a thread pins
  double message_bytes = 600;
  double tensors = 1;

  double first_item_s = 0;  ///< the first item of every worker takes so much longer
  int epochs = 1;           ///< told, not run: later ones cost `epoch_start_s` each
  double epoch_start_s = 0;
  int cores = 2;
  double foreign_cores = 0;
  double hiccups = 0;  ///< share of items that take 5 to 40 ms more
  double tick_s = 1e-4;
};

profile::Profile simulate(const DataLoader& loader, std::uint64_t seed);

}  // namespace headrace::simulation
