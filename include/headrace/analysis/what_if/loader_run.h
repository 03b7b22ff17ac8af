// One run in virtual time of a loader that makes batches ahead:
//
//     worker i: index queue (FIFO, filled round-robin) -> make -> its sending thread
//     training loop: receive -> (wait for the older one) -> draw the next indices -> yield -> step
//
// At most workers x per_worker batches are on their way, counted until they are yielded. All CPU
// work shares the cores. Receiving is serial and costs the training loop its CPU time, never its wall time
// (which is mostly the worker's interpreter lock); with pinning, one thread more receives in its place.
#pragma once

#include <cstdint>

#include "headrace/analysis/what_if/simulated_loader.h"

namespace headrace::analysis {

/// What a simulated run was like once it had settled. Shares are of its time.
struct SimulatedRun {
  double step_s = 0;
  double wait_share = 0;
  double serve_share = 0;   ///< of the training loop: receiving and drawing
  double worker_share = 0;  ///< workers busy, of all of them
  double pin_share = 0;
  double cpu_share = 0;  ///< of the cores

  void add(const SimulatedRun& run, double part) noexcept;
};

/// `batches` steps after as many as the loader needs to settle; they begin at batch `first` of the record.
SimulatedRun simulate(const SimulatedLoader& model, int batches, std::uint64_t first);

}  // namespace headrace::analysis
