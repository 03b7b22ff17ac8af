// The steps that a device ran, as part of a profile.
#pragma once

#include <cstddef>

#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"

namespace headrace::loader_files {

/// Steps whose times a profile contains one by one: the last.
inline constexpr std::size_t kSequence = 512;

/// Adds `device.steps`, with what the gap between two steps was spent on; nothing without a step trace.
void add_device_steps(const RankFiles& files, profile::Profile& profile);

}  // namespace headrace::loader_files
