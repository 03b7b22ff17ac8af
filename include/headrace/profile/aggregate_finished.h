// Adds the cells of finished writers to those of the retired worker, window by window.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/metrics/operator_cell.h"
#include "headrace/metrics/queue_cell.h"
#include "headrace/metrics/sink_cell.h"
#include "headrace/metrics/worker_cell.h"
#include "headrace/profile/layout.h"

namespace headrace::profile {

// Neither side has a live writer: only the owner of the run writes to the retired worker, under its lock.

void clear_worker(metrics::WorkerCell& worker) noexcept;
void clear_cell(metrics::OperatorCell& cell) noexcept;
void clear_sink(metrics::SinkCell& sink) noexcept;
/// Zeroes the counters; the owner and the operator stay.
void empty_cell(metrics::OperatorCell& cell) noexcept;
/// Zeroes the counters; capacity and bins stay.
void clear_queue(metrics::QueueCell& queue) noexcept;
/// Zeroes the counters; the owner stays.
void clear_remote(metrics::RemoteCell& remote) noexcept;
/// Drops the charges to operators, whose numbers are about to be given to other operators.
void forget_operators(metrics::SinkCell& sink) noexcept;
/// Settings, hand-off and gaps: what a loader of a framework leaves in its record.
void clear_framework_facts(LoaderRecord& loader) noexcept;

/// Zeroes what was counted before the loop began, windows included; item counts stay.
void restart_worker(metrics::WorkerCell& worker) noexcept;
void restart_cell(metrics::OperatorCell& cell) noexcept;

/// Doubles the windows of the retired worker and its cells until they are at least `doublings` wide.
void widen_retired(metrics::WorkerCell& retired, std::span<metrics::OperatorCell* const> cells,
                   std::uint32_t doublings) noexcept;
/// Brings the windows of `cell` (on the grid of `worker`) onto the retired grid, every window filled.
void align_windows(const metrics::WorkerCell& retired, const metrics::WorkerCell& worker,
                   metrics::OperatorCell& cell) noexcept;
/// Adds an aligned `cell` to `target`.
void add_cell(metrics::OperatorCell& target, const metrics::OperatorCell& cell) noexcept;
/// Adds the states of `worker`.
void add_worker(metrics::WorkerCell& retired, metrics::WorkerCell& worker) noexcept;
/// Adds the totals of an earlier loader (without its windows and step sequence); see forget_operators.
void add_sink(metrics::SinkCell& target, const metrics::SinkCell& sink) noexcept;

}  // namespace headrace::profile
