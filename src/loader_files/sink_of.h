// The training loop's steps, from what the files note of each batch.
#pragma once

#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"

namespace headrace::loader_files {

/// Fills `sink`, `startup`, `elapsed_s`, `epochs` and notes; leaves them empty where the files have no times.
void add_sink(const RankFiles& files, profile::Profile& profile);

}  // namespace headrace::loader_files
