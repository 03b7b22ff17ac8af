// Tables of a rank's part in a parallel job.
#pragma once

#include "headrace/loader_files/file_table.h"

namespace headrace::loader_files {

/// Communication and wait of each step.
FileTable communication_table(const RankFolder& folder);
/// What went over each link in each step.
FileTable links_table(const RankFolder& folder);
/// Communication and wait of each collective of each step.
FileTable communication_operators_table(const RankFolder& folder);
/// Computation and communication of each step, as the job's mode divides them.
FileTable parallel_steps_table(const RankFolder& folder);

}  // namespace headrace::loader_files
