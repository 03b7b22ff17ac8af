// The input pipeline that a device's profiler saw, as a Profile: what any other loader is judged by.
#pragma once

#include <optional>

#include "headrace/profile/profile.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis {

/// Nothing for a trace that shows no loop which waits for batches, or not what makes them (PyTorch's loaders:
/// wrap those).
///
///     steps      from the end of one wait for a batch (loader_waits.h) to the end of the next; the first is start-up
///     tf.data    an operator for each iterator but prefetches. One that asks what is below it in the same thread is busy
///                for its calls less the calls within them. One that has threads of its own is busy in the part of its
///                calls that wait, less what its threads wait for what is below
///     queues     of iterators with threads of their own: their levels where the profiler read them; a call that lasted
///                and says none found it empty
///     others     the range around the wait, and the ranges directly in it, in the training loop
///
/// CPU time is not known, nor who waits for the interpreter's lock. Thread-safe; never fails.
std::optional<profile::Profile> traced_input(const trace::Trace& trace);

}  // namespace headrace::analysis
