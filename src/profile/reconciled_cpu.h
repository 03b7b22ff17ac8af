// Sampled CPU times of operators, held to the CPU clock of the thread that ran them.
#pragma once

#include <span>

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

}  // namespace headrace::profile
