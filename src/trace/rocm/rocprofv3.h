// The JSON that rocprofv3 writes.
#pragma once

#include <vector>

#include "trace/format.h"

namespace headrace::trace::rocm {

/// An object with "rocprofiler-sdk-tool".
bool is_rocprofv3(const Input& input);

/// As `read_rocpd`, from `*_results.json`, which is read as a stream, perhaps compressed. Streams are HIP's.
/// Throws FormatError for what is no JSON; a file that ends too early gives what is before the cut.
std::vector<TraceFile> read_rocprofv3(Input& input, const ReadOptions& options);

}  // namespace headrace::trace::rocm
