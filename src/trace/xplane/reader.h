// XPlane: what the profilers of JAX, TensorFlow and PyTorch/XLA write (`*.xplane.pb`).
#pragma once

#include <vector>

#include "trace/format.h"

namespace headrace::trace::xplane {

/// Begins like a message of planes.
bool is_xplane(const Input& input);

/// The trace of one host with its devices, which is read whole, perhaps inflated. Work, copies and fills are
/// on the streams of GPUs, with the calls that started them; of a TPU its operations (what holds others, as a
/// loop does, counts where none of them runs) and beside them what runs asynchronously. Events of the host
/// are calls, operators, Python's functions or annotations by what they say (kinds.h); those with `step_num`
/// are steps. Picoseconds are cut to nanoseconds at both ends. Throws FormatError; a file that is damaged
/// gives what is before that.
std::vector<TraceFile> read_xplane(Input& input, const ReadOptions& options);

}  // namespace headrace::trace::xplane
