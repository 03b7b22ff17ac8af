// Perfetto's own format (`*.pftrace`, `*.perfetto-trace`): events of tracks, as rocprofv3 and others write
// them.
#pragma once

#include <vector>

#include "trace/format.h"

namespace headrace::trace::perfetto {

/// Begins like a message of packets.
bool is_perfetto(const Input& input);

/// One trace, which is read whole, perhaps inflated. Begin and end of a track's events are paired; an event
/// that says its own times (`begin_ns`, `end_ns`, as rocprofv3's do) has those, because it cuts kernels that
/// overlap. Categories of PyTorch's profiler and of rocprofv3 say what an event is; others are annotations of
/// their thread. Annotations of an event are arguments. Data of the kernel and of Android is left out with a
/// remark. Throws FormatError; a file that is damaged gives what is before that.
std::vector<TraceFile> read_perfetto(Input& input, const ReadOptions& options);

}  // namespace headrace::trace::perfetto
