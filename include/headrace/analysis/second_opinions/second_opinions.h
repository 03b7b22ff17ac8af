// What other tools would have said of the same files, one row each, with the reason where they are misled.
#pragma once

#include <vector>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// `profile` and `diagnosis`: Headrace's own, of the same files. Empty without a pipeline or a batches' file.
/// Thread-safe; never fails.
std::vector<profile::SecondOpinion> second_opinions(const loader_files::RankFiles& files,
                                                    const profile::Profile& profile,
                                                    const Diagnosis& diagnosis);

}  // namespace headrace::analysis
