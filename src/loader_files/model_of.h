// How the dataset is set, as its user writes it: the model that advice and prediction go by.
#pragma once

#include <vector>

#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"

namespace headrace::loader_files {

/// Adds the model, and to operators and queues the parameters that set them. `group`: for each operator of the
/// profile the one in whose threads it runs, itself or another; -1: the training loop's.
void add_model(const RankFiles& files, profile::Profile& profile, const std::vector<int>& group);

}  // namespace headrace::loader_files
