// Memory cost of a change.
#pragma once

#include <optional>
#include <vector>

#include "headrace/analysis/model/change.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Bytes of the batches that `changes` let wait ready beyond those of today (below 0: fewer), every place
/// taken: places x the largest batch seen. A worker process's own memory comes on top. Empty where batches
/// were not looked at, or the changes are none of buffers and workers.
std::optional<double> more_memory(const profile::Profile& profile, const std::vector<Change>& changes);

}  // namespace headrace::analysis
