// What keeps a host from launching work that is neither the launches themselves nor waits for the device.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct HostCall {
  trace::Row row = 0;
  Interval time;
};

/// Calls of the runtime that take memory of the device or of pinned pages, or give it back.
std::vector<HostCall> memory_calls(const trace::Trace& trace);

/// What costs much once: a call that takes a millisecond and is neither a wait, a copy nor a call for memory (the
/// first launch loads the kernel's module), the capture of a graph, a compilation.
std::vector<HostCall> one_offs(const trace::Trace& trace);

/// Waits for the input and for work that is older than the recording, calls that take memory or give it back, and what
/// costs much once; disjoint.
Intervals held_up(const trace::Trace& trace);

}  // namespace headrace::analysis::device
