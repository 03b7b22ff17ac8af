// When a training loop waited for its next batch, as the profiler saw it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Which ranges of the host are waits for a batch: one entry per name of the trace.
///
/// Known by their names: what PyTorch puts around a loader's `__next__`
/// ("enumerate(DataLoader)#....__next__"), tf.data's `IteratorGetNextOp::DoCompute` and
/// `IteratorGetNextAsOptionalOp::DoCompute`, Python functions called `__next__` (JAX's tracer). Where a trace
/// has none of them and shows what works (a device, or XLA on the host): of the ranges directly within the
/// steps or beside them that start no work, that take a twentieth of them or more, and whose name speaks of
/// data ("next_batch", "load"), the longest.
std::vector<bool> loader_wait_names(const trace::Trace& trace);

/// The name of those that take most time, empty if there is none.
std::string longest_loader_wait(const trace::Trace& trace);

/// A range's name as people read it: "$train.py:12 __next__", as JAX writes a Python function, is "__next__
/// (train.py:12)".
std::string shown_range(std::string_view name);

/// Their times, on the clock of the file. Empty if the loader is none of these: then the waits have to come
/// from Headrace's own record of the run.
Intervals loader_waits(const trace::Trace& trace);

}  // namespace headrace::analysis::device
