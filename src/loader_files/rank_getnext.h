// The GetNext calls of a rank's device, whichever of its files has them.
#pragma once

#include "headrace/loader_files/getnext_file.h"
#include "headrace/loader_files/profiler_folder.h"

namespace headrace::loader_files {

/// minddata_aicpu, else minddata_getnext_profiling, else the profiler's raw files, joined by time. FormatError
/// where the file is damaged; of raw files, where all of them are.
GetNextFile getnext_of(const RankFolder& folder);

}  // namespace headrace::loader_files
