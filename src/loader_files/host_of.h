// CPU time in the steady part of the run, and the machine.
#pragma once

#include <optional>

#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"

namespace headrace::loader_files {

/// Mean cores of a series from the end of the first batch to that of the last; of the whole series where the
/// batches have no times. Empty for an empty series.
std::optional<double> steady_cores(const RankFiles& files, const TimedSeries& percent);

/// Fills `host`.
void add_host(const RankFiles& files, profile::Profile& profile);

}  // namespace headrace::loader_files
