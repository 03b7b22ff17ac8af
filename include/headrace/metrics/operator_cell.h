// One worker's record of one operator.
#pragma once

#include <cstdint>

#include "headrace/metrics/latency_histogram.h"
#include "headrace/metrics/relaxed.h"
#include "headrace/metrics/service_sequence.h"
#include "headrace/metrics/transfer_cell.h"
#include "headrace/metrics/windows.h"

namespace headrace::metrics {

/// Origin of a call; the same operator called from two places has two cells.
enum class Place : std::uint8_t {
  worker = 0,    ///< a thread of its own
  get_next = 1,  ///< the sink's thread, inside GetNext: no overlap with the step
  step = 2,      ///< the sink's thread, in the training step
};

/// Lives in the segment; written by its worker only, under the worker's seqlock where the worker's clock
/// moves. Times are exclusive: nested operators and queue waits are charged where they belong.
struct alignas(64) OperatorCell {
  Relaxed<std::uint32_t> owner;  ///< 0: free; else 1 + index of the worker cell
  Relaxed<std::uint32_t> operator_id;
  Relaxed<std::uint8_t> place;
  Relaxed<std::uint8_t> is_loop;   ///< 1: the worker's own loop between queue calls, not an annotated body
  Relaxed<std::uint8_t> labelled;  ///< 1: `slowest` holds the framework's names of items (dataset indices)
  Relaxed<std::uint8_t> sampled;   ///< 1: one call in 32 was timed and counts for all of them
  // Written by the sampler of the owning process: looks at the thread in this body, and those that found it
  // waiting for the interpreter lock, holding it (of those at which its holder was known), or waiting for
  // storage.
  Relaxed<std::uint32_t> samples;
  Relaxed<std::uint32_t> lock_samples;
  Relaxed<std::uint32_t> holder_samples;
  Relaxed<std::uint32_t> held_samples;
  Relaxed<std::uint32_t> state_samples;
  Relaxed<std::uint32_t> storage_samples;
  Relaxed<std::uint32_t> file_system;  ///< the one that it last waited for (host_storage.h); 0: not known
  // Written by the worker again.
  Relaxed<std::uint64_t> items;           ///< finished, start-up included
  Relaxed<std::uint64_t> failures;        ///< bodies that raised
  Relaxed<std::int64_t> busy_ns;          ///< loop time
  Relaxed<std::int64_t> loop_items;       ///< finished while the loop ran
  Relaxed<std::int64_t> sampled_wall_ns;  ///< of the calls whose CPU time was read
  Relaxed<std::int64_t> sampled_cpu_ns;
  Relaxed<std::int64_t> sampled_pool_ns;  ///< of other threads meanwhile, in a loader's worker process
  Relaxed<std::int64_t> first_done_ns;  ///< Clock of the first finished item; orders operators of one thread
  LatencyHistogram service;
  SlowestItems slowest;
  BurstSampling sampling;
  ServiceSequence sequence;
  WindowLog<2> windows;  ///< running totals of busy_ns, loop_items
  TransferCell transfer;

  /// Forgets what was counted before the loop began; totals stay.
  void restart() noexcept {
    sampled.store(0);
    busy_ns.store(0);
    loop_items.store(0);
    sampled_wall_ns.store(0);
    sampled_cpu_ns.store(0);
    sampled_pool_ns.store(0);
    samples.store(0);
    lock_samples.store(0);
    holder_samples.store(0);
    held_samples.store(0);
    state_samples.store(0);
    storage_samples.store(0);
    file_system.store(0);
    service.reset();
    slowest.reset();
    sampling.reset();
    sequence.reset();
    transfer.reset();
  }
};

}  // namespace headrace::metrics
