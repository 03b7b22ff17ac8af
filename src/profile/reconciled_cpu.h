// Sampled CPU times of operators, held to the CPU clock of the thread that ran them.
#pragma once

#include "headrace/profile/figures.h"

namespace headrace::profile {

/// CPU time is read for a part of the items only. Where those are not like the others (a stream that computes
/// for 256 items and then hands them out one by one), their share of CPU time is not the whole's. What a
/// thread's operators use together is known from its clock: their figures are changed so that they add up to
/// it, those with such items first.
void reconcile_cpu(SegmentFigures& figures);

}  // namespace headrace::profile
