// Files without the samples of the start and of the end of the run.
#pragma once

#include "headrace/loader_files/rank_files.h"

namespace headrace::loader_files {

/// Levels of queues and raw CPU times of the steady samples only: those after the first batch, up to the last
/// one, and up to where the source ran dry. Batches and everything else are as they were.
RankFiles only_steady(const RankFiles& files);

}  // namespace headrace::loader_files
