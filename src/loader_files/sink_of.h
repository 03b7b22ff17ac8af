// The training loop's steps, from what the files note of each batch.
#pragma once

#include <vector>

#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"
#include "loader_files/loop_calls.h"

namespace headrace::loader_files {

/// Fills `sink`, `startup`, `elapsed_s` and `epochs` from calls in the order of time. The first is start-up;
/// a step is from the end of one call to the end of the next.
void add_calls(const std::vector<Call>& calls, profile::Profile& profile);

/// Fills `sink`, `startup`, `elapsed_s`, `epochs` and notes; leaves them empty where the files have no times.
void add_sink(const RankFiles& files, profile::Profile& profile);

}  // namespace headrace::loader_files
