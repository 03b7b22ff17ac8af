// The training step of a simulated run, as it was recorded.
#pragma once

#include <vector>

#include "headrace/analysis/model/work.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Its time off the cores and on one, step by step; one mean step where none was recorded. Never empty.
/// `own_s`: its mean without what a simulation adds by itself (waiting for the interpreter lock),
/// `queue_share`: of it, waiting for a core, where nobody looked at its thread. `host`: how busy the machine was.
std::vector<Work> training_steps(const profile::SinkProfile& sink, double own_s, double queue_share,
                                 const profile::Host& host);

}  // namespace headrace::analysis
