// The recording of one wrapped loader at its sink.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "headrace/metrics/latency_histogram.h"
#include "headrace/metrics/part_of_compute.h"
#include "headrace/metrics/relaxed.h"
#include "headrace/metrics/seqlock.h"
#include "headrace/metrics/windows.h"

namespace headrace::metrics {

inline constexpr int kLedgerOperators = 128;

struct LongestWait {
  Relaxed<std::int64_t> wait_ns;
  Relaxed<std::int64_t> at_ns;  ///< loop time of the delivery
  Relaxed<std::uint64_t> step;
};

/// The sink's figures. Steady means: after the first batch of an epoch; start-up has fields of its own.
struct alignas(64) SinkCell {
  Relaxed<std::uint64_t> epochs;
  Relaxed<std::uint64_t> steps;          ///< batches yielded, first ones included
  Relaxed<std::int64_t> first_batch_ns;  ///< from iter() to the first batch of the first epoch
  Relaxed<std::int64_t> later_epochs_ns;
  Relaxed<std::int64_t> first_iter_ns;  ///< Clock at the first iter()
  Relaxed<std::uint32_t> active;        ///< loops that run now
  Relaxed<std::uint32_t> failed;        ///< loops that ended with an exception of the iterator
  Relaxed<std::int64_t> last_event_ns;  ///< Clock
  Relaxed<std::uint64_t> queues;        ///< bit per recorded queue that a GetNext took from
  std::array<Relaxed<std::uint64_t>, kLedgerOperators / 64>
      operators;  ///< bit per operator run inside a GetNext

  Relaxed<std::uint32_t> worker;  ///< 1 + worker cell of the loop's thread; 0: none yet
  // Written by the sampler: looks at the thread while it computes, those that found it waiting for the
  // interpreter lock, holding it (of those at which its holder was known), and on a core or ready to run.
  Relaxed<std::uint32_t> samples;
  Relaxed<std::uint32_t> lock_samples;
  Relaxed<std::uint32_t> holder_samples;
  Relaxed<std::uint32_t> held_samples;
  Relaxed<std::uint32_t> running_samples;

  alignas(64) Seqlock lock;
  Relaxed<std::uint32_t> waiting;  ///< 1 during a steady GetNext
  Relaxed<std::int64_t> since_ns;  ///< loop time at which it began
  Relaxed<std::int64_t> waits;     ///< steady GetNext calls that delivered
  Relaxed<std::int64_t> computes;
  Relaxed<std::int64_t> wait_ns;
  Relaxed<std::int64_t> starved_ns;
  Relaxed<std::int64_t> worker_start_ns;  ///< of starved_ns: for the first batch that a worker made at all
  Relaxed<std::int64_t> compute_ns;
  Relaxed<std::int64_t> ready_calls;    ///< found their batch ready
  Relaxed<std::int64_t> ready_wait_ns;  ///< ... and still waited so long, in sum
  Relaxed<std::int64_t> sampled_compute_ns;
  Relaxed<std::int64_t> sampled_compute_cpu_ns;
  Relaxed<std::int64_t> quiet_steps;  ///< sampled steps with no busy worker at both ends
  Relaxed<std::int64_t> quiet_compute_ns;
  Relaxed<std::int64_t> device_steps;    ///< steps with a mark at either end in the device's queue
  Relaxed<std::int64_t> device_ns;       ///< between the marks, on the device's clock
  Relaxed<std::int64_t> device_host_ns;  ///< compute of the same steps
  Relaxed<std::int64_t> whole_steps;     ///< with a steady wait and all of their compute
  Relaxed<std::int64_t> marked_steps;    ///< of these: the beginning of forward was told (step_marks.h)
  Relaxed<std::int64_t> marked_gap_ns;   ///< GetNext wait, and from the batch to forward
  Relaxed<std::int64_t> marked_forward_backward_ns;
  Relaxed<std::int64_t> tail_steps;  ///< of the marked ones: the end of backward was told too
  Relaxed<std::int64_t> marked_tail_ns;
  Relaxed<std::int64_t>
      redirected_ns;  ///< of the wrapped object's own time: it waited for a worker elsewhere
  WindowGrid grid;
  std::array<Relaxed<std::int64_t>, kLedgerOperators>
      ledger;  ///< blocked time charged to an operator elsewhere
  // If batches are followed one by one:
  std::array<Relaxed<std::int64_t>, kLedgerOperators> ledger_order;  ///< a younger batch was ready meanwhile
  std::array<Relaxed<std::int64_t>, kLedgerOperators>
      ledger_waiting;                       ///< its worker was busy with an older one
  Relaxed<std::int64_t> ledger_handoff_ns;  ///< of calls that found their batch unfinished: after it was made
  Relaxed<std::int64_t> ledger_unknown_ns;
  std::array<LongestWait, 8> longest;
  Relaxed<std::int64_t> longest_threshold_ns;

  static constexpr std::uint32_t kSequence = 512;
  struct Step {
    Relaxed<float> wait_ns;
    Relaxed<float> compute_ns;
    PartOfCompute cpu;             ///< CPU time of the loop's thread
    PartOfCompute before_forward;  ///< until the beginning of forward
    PartOfCompute tail;            ///< from the end of backward
  };
  std::array<Step, kSequence> sequence;  ///< newest at (computes - 1) % kSequence

  LatencyHistogram wait;
  LatencyHistogram step;  ///< GetNext wait and compute of the steps that have a steady wait
  WindowLog<4> windows;   ///< running totals of waits, wait_ns, starved_ns, compute_ns

  /// Keeps a wait that is longer than the shortest in `longest`.
  void remember_longest(std::int64_t wait_ns, std::int64_t at_ns, std::uint64_t step) noexcept {
    if (wait_ns <= longest_threshold_ns.load()) return;
    const auto shorter = [](const LongestWait& a, const LongestWait& b) {
      return a.wait_ns.load() < b.wait_ns.load();
    };
    LongestWait& smallest = *std::min_element(longest.begin(), longest.end(), shorter);
    smallest.wait_ns.store(wait_ns);
    smallest.at_ns.store(at_ns);
    smallest.step.store(step);
    longest_threshold_ns.store(std::min_element(longest.begin(), longest.end(), shorter)->wait_ns.load());
  }
};

}  // namespace headrace::metrics
