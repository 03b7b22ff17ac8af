// A framework's loader whose workers make whole batches ahead of the loop: what its model says, in the terms
// that causes and advice ask in, and which of the profile's operators play which part.
//
//     loop: draws -> workers (source, maps, collate) -> hands over -> [pins] -> order -> loop
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Indices are into Profile::operators; below 0: there is none.
struct Loader {
  int workers = 0;     ///< 0: everything runs in the training loop
  int per_worker = 2;  ///< batches in flight for each of them
  bool ordered = true;
  bool keeps_workers = false;  ///< between epochs
  bool pins = false;
  bool stream = false;          ///< each worker reads its own copy or part of it
  std::string batch;            ///< class of its batches; "" where they are plain containers
  std::string device;           ///< where batches are copied to, where that is known
  std::vector<int> in_workers;  ///< what moves with the number of workers
  int sampler = -1;
  int handoff = -1;
  int pin = -1;
  int to_device = -1;
  std::vector<profile::LoaderParameter> parameters;
  std::string shard_advice;  ///< what a stream must do to give each worker its own part
  std::string rows_advice;   ///< how its user takes the rows of a batch at once

  /// Batches on their way at the same time.
  int window() const noexcept { return workers * per_worker; }
  /// The framework's parameter for it; null if it has none.
  const profile::LoaderParameter* parameter(profile::Quantity sets) const noexcept {
    return profile::parameter_that_sets(parameters, sets);
  }
};

/// Empty if the profile has no model with a window of batches in flight.
std::optional<Loader> loader_of(const profile::Profile& profile);

/// The framework's parameter for `quantity`; null without a model, or if it has none.
const profile::LoaderParameter* parameter_of(const profile::Profile& profile,
                                             profile::Quantity quantity) noexcept;

/// Settings that samples of the stack inside next() gave: "threads" or "processes", and the parameter that
/// sets how many of them the object has ("num_processes=2").
inline constexpr std::string_view kWaitsFor = "waits_for";
inline constexpr std::string_view kOwnWorkers = "own_workers";
/// How many threads or processes of pools there are, where it waits for those.
inline constexpr std::string_view kHelpers = "helpers";

/// Sampler and seconds of an epoch's first draw ("WeightedRandomSampler 3.400").
inline constexpr std::string_view kFirstDraw = "first_draw";
/// "thread": a thread iterates the loader and hands its batches on, in a way that is not recorded. "loop":
/// the main thread does, and waits for the thread that takes them.
inline constexpr std::string_view kHandsOver = "hands_over";
/// Line of the program that made the loader ("train.py:12").
inline constexpr std::string_view kMadeAt = "made_at";
/// How many cores the machine has, where the run's affinity allows fewer.
inline constexpr std::string_view kMachineCores = "machine_cores";
/// Function that the loop ran in steps that took many times as long as others ("evaluate
/// (train.py:88)").
inline constexpr std::string_view kPausesIn = "pauses_in";
/// "rank 0": that rank's loader makes the batches of all ranks.
inline constexpr std::string_view kBatchesFrom = "batches_from";
/// "all": each worker of a stream reads the whole of it, as far as its first batches show.
inline constexpr std::string_view kEachWorkerReads = "each_worker_reads";

/// The value of a setting; "" if it has none.
std::string setting(const profile::Profile& profile, std::string_view parameter);

/// Whether operator `op` runs in the training step, not inside GetNext: its time is part of the sink's
/// compute.
bool runs_in_step(const profile::Profile& profile, int op);

/// Time per batch of all workers together that loading one batch takes: the sum over `in_workers`.
double work_per_batch_s(const profile::Profile& profile, const Loader& loader);

/// Making a batch needs a core most of the time, not storage or a network.
bool computes(const profile::Profile& profile, const Loader& loader);

}  // namespace headrace::analysis
