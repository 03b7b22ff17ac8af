// A recorded loader as a network that a simulation runs on: stages with workers, the queues between them, the training
// loop at the end, and what they share (cores, the interpreter lock, a device).
//
//     stage 0 (2 workers) --queue 0--> stage 1 --queue 1--> training loop
//            ^                                                   |
//            '--------- a window: one more item for each taken <-'
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

#include "headrace/analysis/model/change.h"
#include "headrace/analysis/model/work.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Works of one worker, in the order in which they were recorded.
using WorkSequence = std::vector<Work>;

/// How threads come to the interpreter lock.
struct LockUse {
  int turns = kTurns;  ///< how often a cycle of a worker, or a step of the training loop, takes it
  std::optional<double> waited_s;  ///< per batch, as recorded; none: nobody looked
};

struct Network {
  struct Queue {
    int capacity = 1;  ///< tokens
  };
  /// Mean tokens per cycle that a stage takes from a queue or puts into it.
  struct Edge {
    int queue = 0;
    double tokens = 1;
  };
  struct Stage {
    int workers = 1;
    /// Above 0: it takes from no queue. So many items are dealt out to each worker in turn, and one more for each that the
    /// training loop takes: in turn again where that takes them in order, else to a worker that has fewer. What an item
    /// costs belongs to it, whoever makes it.
    int window = 0;
    /// Delivers in the order in which it took: item n has the n-th place in the one queue behind it, and
    /// waits there until the older ones have come.
    bool ordered = false;
    bool receives = false;  ///< in the training loop's place
    double cycles_per_batch = 1;
    std::vector<Edge> inputs;
    std::vector<Edge> outputs;
    /// Works per cycle, in the order in which they were recorded, one list per recorded worker. Never empty.
    std::vector<WorkSequence> lanes;
    double hands_on_cpu_s = 0;  ///< per item, in a thread beside each worker; 0: it hands on itself
    std::string name;           ///< of the operator that takes most of it
    LockUse lock;

    /// Several workers, one token put per cycle.
    bool can_keep_order() const noexcept;
  };

  double cores = 1;           ///< what others leave of them
  double pool_cpu_s = 0;      ///< per step, of pools (cores.h)
  std::vector<Queue> queues;  ///< of the profile, in its order; further ones where it knows none
  std::vector<Stage> stages;
  std::vector<Edge> inputs;  ///< of the training loop, per batch
  bool ordered = false;      ///< it receives what comes, and takes it in the order in which it was dealt out
  Work receive;              ///< per batch, in the training loop (or a stage): taking a finished one
  double receive_locked_s = 0;  ///< so much longer from a worker that is busy: its interpreter lock
  Work draw;                    ///< per batch, in the training loop: the sampler
  std::string serves;           ///< operator that takes most of receiving and drawing; "": none of its own
  std::vector<Work> in_sink;    ///< per batch, loading in the training loop's own thread; empty: none
  std::string slowest_in_sink;  ///< operator that takes most of it
  std::vector<Work> steps;      ///< the training step, as recorded. Never empty.
  double device_s = 0;          ///< an asynchronous device works so long on each; 0: the host waits for it
  LockUse sink_lock;            ///< of the training loop's thread
  bool order_known = true;      ///< false: nothing tells whether stages of several workers keep the order
  bool guessed_queue = false;   ///< operators without a queue between them, or none that was seen

  /// Largest standard deviation / mean of what a batch costs a stage or the training loop.
  double variation() const;
  int batches() const noexcept;  ///< of a run: as long as one of any other network, whatever the batch size
  std::size_t recorded() const noexcept;  ///< works of its longest record
  /// Every cycle of a stage, and every step, takes the mean.
  void make_even();
  /// Another run of the same loader: draws the works again in blocks that stay together (a block bootstrap).
  void draw_again(std::mt19937_64& random);
};

/// The run as it was recorded, with `changes` made. `ordered`: stages of several workers keep the order, also where
/// they do not say so. Batches whose items were recorded in part only are composed of items drawn at random by `seed`.
/// False if the recorded loader has no such change, or if nothing that can be simulated was recorded.
bool make_network(const profile::Profile& profile, const std::vector<Change>& changes, bool ordered,
                  std::uint64_t seed, Network& network);

}  // namespace headrace::analysis
