// A recorded pipeline of threads (or processes) and queues as numbers that a simulation runs on.
//
//     stage 0 (2 workers) --queue 0--> stage 1 --queue 1--> training loop
//
// Operators that share a thread are one stage. Items are counted in tokens: where a batch is made of many
// small items, several of them travel as one, so that a run costs the same whatever the batch size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/analysis/what_if/task.h"
#include "headrace/analysis/what_if/work.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// How threads come to the interpreter lock.
struct LockUse {
  int turns = Task::kTurns;  ///< how often a cycle of a worker, or a step of the training loop, takes it
  std::optional<double> waited_s;  ///< per batch, as recorded; none: nobody looked
};

struct PipelineModel {
  struct Queue {
    int capacity = 1;  ///< tokens
  };
  /// What a stage takes from a queue, or puts into it, per cycle, on average.
  struct Edge {
    int queue = 0;
    double tokens = 1;
  };
  struct Stage {
    int workers = 1;
    /// Delivers in the order in which it took: item n has the n-th place in the one queue behind it, and
    /// waits there until the older ones have come.
    bool ordered = false;
    double cycles_per_batch = 1;
    std::vector<Edge> inputs;
    std::vector<Edge> outputs;
    /// Works per cycle, in the order in which they were recorded, one list per recorded worker. Never empty.
    std::vector<std::vector<Work>> lanes;
    std::string name;  ///< of the operator that takes most of it
    LockUse lock;

    /// Several workers, one token put per cycle.
    bool can_keep_order() const noexcept;
  };

  double cores = 1;           ///< what others leave of them
  double pool_cpu_s = 0;      ///< per step, of pools (beside_others.h)
  std::vector<Queue> queues;  ///< of the profile, in its order; further ones where it knows none
  std::vector<Stage> stages;
  std::vector<Edge> inputs;   ///< of the training loop, per batch
  Work receive;               ///< per batch, in the training loop: what taking a finished one costs
  std::vector<Work> in_sink;  ///< per batch, loading in the training loop's own thread; empty: none
  std::string slowest_in_sink;
  std::vector<Work> steps;  ///< the training step, as recorded. Never empty.
  double device_s = 0;      ///< an asynchronous device works so long on each; 0: the host waits for it
  LockUse sink_lock;        ///< of the training loop's thread
  /// Operators without a queue between them, or none that was seen: how far they run ahead is a guess.
  bool guessed_queue = false;

  double variation() const;
  int batches() const noexcept;
  std::size_t recorded() const noexcept;
  void draw_again(std::mt19937_64& random);
};

/// The run as it was recorded, with `changes` made. `ordered`: operators of several workers keep the order,
/// also where they do not say so. False if a pipeline of threads and queues has no such change, or if
/// nothing that can be simulated was recorded.
bool make_pipeline_model(const profile::Profile& profile, const std::vector<Change>& changes, bool ordered,
                         std::uint64_t seed, PipelineModel& model);

}  // namespace headrace::analysis
