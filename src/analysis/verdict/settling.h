// Where the steady part of a run begins.
#pragma once

#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/sink_profile.h"

namespace headrace::analysis {

/// Seconds of wait in the first steps, where the loop hardly waits afterwards, for at least as long: buffers were empty,
/// and workers, or what they import, still started. Only in a run whose steps are all there.
double settling_s(const profile::SinkProfile& sink, const GateThresholds& thresholds);

}  // namespace headrace::analysis
