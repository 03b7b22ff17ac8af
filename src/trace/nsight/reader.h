// The SQLite export of NVIDIA Nsight Systems (`nsys export --type sqlite`), read into the columns of a trace.
#pragma once

#include <vector>

#include "trace/format.h"

namespace headrace::trace::nsight {

bool is_export(const Input& input);

/// A trace for each process that has work on a device, by device and then by process; where none has, for each
/// process that called CUDA, else one for the whole file. Export schemas 3.4 to 3.25; a table that has no rows is
/// not in a file.
///
/// Kernels, copies, fills and replays of graphs keep stream and correlation, which is one of their process's
/// calls. Ranges of NVTX are operators where PyTorch's `emit_nvtx` wrote them, else annotations. Migrations of
/// unified memory are on no stream. Times are nanoseconds since the session began; `base_time_ns` is its Unix
/// time. Memory beside the columns: each name once, and 16 bytes for each row of StringIds.
std::vector<TraceFile> read_export(Input& input, const ReadOptions& options);

}  // namespace headrace::trace::nsight
