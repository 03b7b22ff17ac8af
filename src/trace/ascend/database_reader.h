// The SQLite file of an Ascend profile, read into the columns that its trace_view.json gives.
#pragma once

#include <vector>

#include "trace/format.h"

namespace headrace::trace::ascend {

bool is_profile(const Input& input);

/// `ascend_pytorch_profiler_N.db`, `ascend_mindspore_profiler_N.db`, `msprof_*.db`: one rank. Names, times in
/// integer nanoseconds, rows, streams, connections and the two ends of the task queue are those of
/// trace_view.json; counters are left out, and copies have a direction and bytes only where the file has
/// MEMCPY_INFO. Memory beside the columns: the texts once, and about 50 bytes for each task with a name of its
/// own.
std::vector<TraceFile> read_profile(Input& input, const ReadOptions& options);

}  // namespace headrace::trace::ascend
