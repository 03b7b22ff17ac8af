// The run over time: steps, levels of queues and work of operators in windows, as in a run that was recorded.
#pragma once

#include "file_places.h"
#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"
#include "sample_range.h"
#include "sampled_states.h"

namespace headrace::loader_files {

/// Fills `windows`, on the grid of recorded runs (metrics/windows.h) and not finer than the samples, up to the last
/// steady sample. A sample stands for the time since the one before it. There are no windows where the moments of
/// the samples are not known, nor where the steps are the device's, whose clock is another one.
void add_windows(const RankFiles& files, const SampleRange& range, const FilePlaces& places,
                 const SampledWork& work, profile::Profile& profile);

}  // namespace headrace::loader_files
