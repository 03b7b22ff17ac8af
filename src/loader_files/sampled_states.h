// What each operator did, from the levels of the queues around it and from its CPU time.
#pragma once

#include <vector>

#include "file_places.h"
#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"
#include "sample_range.h"

namespace headrace::loader_files {

/// CPU time, in cores, above which an operator is seen to compute: where it does, and in which process.
inline constexpr double kComputesCores = 0.2;

/// Of each operator of the profile, of each steady sample: the share of its workers at work. Empty for an operator
/// that the samples say nothing about.
using SampledWork = std::vector<std::vector<double>>;

/// Fills states, busy time, demand and CPU time of the operators. At work at a sample is an operator whose input
/// queues have rows and whose output queue has room.
SampledWork add_states(const RankFiles& files, const SampleRange& range, const FilePlaces& places,
                       profile::Profile& profile);

/// An operator without input may have been at its last row, one without room at the next. So busy time and demand
/// of an operator are known only if it was mostly seen at work where it mattered: in the windows in which the loop
/// starves, or in the whole run where there are none. This forgets the others.
void drop_unknown_work(profile::Profile& profile);

}  // namespace headrace::loader_files
