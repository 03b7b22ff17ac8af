// One operator's share in every batch, from what was recorded of its items.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "headrace/analysis/model/work.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// How an operator's wall time is made up; the rest is off the cores.
struct TimeSplit {
  double cpu_share = 0;
  double queue_share = 0;  ///< waiting for a core
  double lock_share = 0;   ///< waiting for the interpreter lock
  double slowdown = 1;     ///< of its CPU work, beside that of others; a simulation adds it by itself

  /// Waits that simulations add.
  double waits() const noexcept { return queue_share + lock_share; }
};

TimeSplit split_of(const profile::OperatorProfile& op, const profile::Host& host);

/// Whole batches come in the order in which they were made, if enough were recorded; of larger batches
/// the recorded items are drawn at random, the rarest of the whole run among them. Means are always those of
/// the whole run.
class RecordedBatches {
 public:
  using Random = std::mt19937_64;

  /// `items`: that are done together, on average. `factor` multiplies the service.
  RecordedBatches(const profile::OperatorProfile& op, const profile::Host& host, double items, double factor);

  /// No worker is slower than the usual one.
  void make_alike();
  /// No item takes many times as long as the usual one.
  void make_usual();

  /// From here on every batch takes the mean.
  void use_mean();

  /// Recorded workers; 0 where only the mean is known.
  std::size_t lanes() const noexcept { return lanes_.size(); }
  /// Batches keep their order.
  bool whole() const noexcept { return whole_; }
  /// Whole batches of the longest lane.
  std::size_t length() const noexcept;

  Work batch(std::size_t lane, std::size_t number, Random& random) const;

 private:
  /// The items of one worker, oldest first.
  struct WorkerRecord {
    std::vector<Work> sequence;
    std::vector<Work> slowest;  ///< of all its items, where the sequence holds few of them
    double items = 0;

    double mean_s() const noexcept;
  };

  void read_lanes(const profile::OperatorProfile& op, const TimeSplit& split);
  std::size_t items() const noexcept;
  Work recorded(const WorkerRecord& lane, std::size_t number) const;
  Work composed(const WorkerRecord& lane, Random& random) const;
  static const Work& one(const WorkerRecord& lane, Random& random);

  std::vector<WorkerRecord> lanes_;
  double per_batch_;
  double scale_ = 1;
  Work mean_;  ///< of an item
  bool whole_ = false;
};

/// Its time off the cores and on one, step by step; one mean step where none was recorded. Never empty.
/// `own_s`: its mean without what a simulation adds by itself (waiting for the interpreter lock),
/// `queue_share`: of it, waiting for a core, where nobody looked at its thread. `host`: how busy the machine was.
std::vector<Work> training_steps(const profile::SinkProfile& sink, double own_s, double queue_share,
                                 const profile::Host& host);

}  // namespace headrace::analysis
