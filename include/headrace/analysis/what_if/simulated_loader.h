// A recorded loader that makes batches ahead, as numbers that a simulation runs on: how long each batch took
// to make, with its CPU and off-CPU parts, in the order in which they were made; what handing one over costs;
// the training step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "headrace/analysis/diagnosis/loader.h"
#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/analysis/what_if/work.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct SimulatedLoader {
  int workers = 0;
  int per_worker = 2;
  bool ordered = true;
  double cores = 1;       ///< what others leave of them
  double pool_cpu_s = 0;  ///< per step, of pools (beside_others.h)
  /// Batches as they were made, one list per recorded worker, newest last: the sequence, not its mean,
  /// decides how long the training loop waits where items vary. Never empty.
  std::vector<std::vector<Work>> lanes;
  std::vector<Work> steps;  ///< the training step, as recorded. Never empty.
  double device_s = 0;      ///< an asynchronous device works so long on each; 0: the host waits for it
  Work receive;             ///< per batch, in the training loop (or in the thread that pins)
  double locked_s = 0;  ///< receiving from a worker that is busy takes so much longer: its interpreter lock
  Work pin;
  Work draw;  ///< the sampler, per batch, in the training loop
  bool pins = false;
  double pickle_cpu_s = 0;  ///< per batch, in the worker's sending thread
  std::string slowest;      ///< operator that takes most of making a batch
  std::string handoff;
  std::string pinning;
  std::string sampler;

  double variation() const;
  int batches() const noexcept { return 200; }
  std::size_t recorded() const noexcept { return lanes.front().size(); }
  void draw_again(std::mt19937_64& random);
};

/// The run as it was recorded, with `changes` made. False if such a loader has no such change.
/// Batches whose items were recorded in part only are composed of items drawn at random by `seed`.
bool make_simulated_loader(const profile::Profile& profile, const Loader& loader,
                           const std::vector<Change>& changes, std::uint64_t seed, SimulatedLoader& model);

}  // namespace headrace::analysis
