// One run of a network in virtual time:
//
//     worker: take what a cycle needs -> work -> (wait for older ones) -> put what it made
//     training loop: take a batch -> receive it (-> wait for older ones) -> load in its own thread -> draw -> step
//
// Queues are bounded and first in, first out; all CPU work shares the cores, and one thread at a
// time holds the interpreter lock.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/analysis/model/network.h"

namespace headrace::analysis {

/// Figures of a simulated run once it has settled. Shares are of its time.
struct SimulatedRun {
  double step_s = 0;  ///< 0: the run came to a stop (no stage could go on)
  double wait_share = 0;
  double serve_share = 0;    ///< of the training loop: receiving and drawing
  double load_share = 0;     ///< of the training loop: loading in its own thread
  double cpu_share = 0;      ///< of the cores
  double lock_share = 0;     ///< the interpreter lock is held
  std::vector<double> busy;  ///< per stage, of its workers
  /// Per batch, in seconds: for the interpreter lock, by all workers of a stage, and by the training loop.
  std::vector<double> lock_waited_s;
  double sink_lock_waited_s = 0;

  void add(const SimulatedRun& run, double part);
};

/// `batches` steps after as many as the network needs to settle; they begin at cycle `first` of the record.
SimulatedRun simulate(const Network& network, int batches, std::uint64_t first);

}  // namespace headrace::analysis
