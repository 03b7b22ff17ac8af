// The CPU time of a thread, and its waits for a core, shared out between the operators that it ran.
#pragma once

#include <span>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/layout.h"

namespace headrace::profile {

/// CPU time is read for a part of the items only. Where those are not like the others (a stream that computes
/// for 256 items and then hands them out one by one), their share of CPU time is not the whole's. What a
/// thread's operators use together is known from its clock: their figures are changed so that they add up to
/// it, those with such items first. Threads that wait for processes which do the work are left alone: what
/// those processes measured is in no clock of the thread.
void reconcile_cpu(SegmentFigures& figures, std::span<const OperatorRecord> operators);

/// CPU time of the whole cell, if its other items are like the sampled ones.
double estimated_cpu_ns(const CellFigures& cell);

/// Nanoseconds per cell: by busy time, and never more of it than was off a core. The scheduler counts the waits of a
/// thread, not of an operator. 0 where it said nothing.
std::vector<double> run_queue_waits_ns(const SegmentFigures& figures);

}  // namespace headrace::profile
