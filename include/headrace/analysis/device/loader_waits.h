// When a training loop waited for its next batch, as the profiler saw it.
#pragma once

#include <string_view>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// True for the range that PyTorch puts around a loader's `__next__`: "enumerate(DataLoader)#....__next__".
bool is_loader_wait(std::string_view name) noexcept;

/// The ranges of the host around `__next__`, on the clock of the file. Empty if the loader is not
/// PyTorch's: then the waits have to come from Headrace's own record of the run.
Intervals loader_waits(const trace::Trace& trace);

}  // namespace headrace::analysis::device
