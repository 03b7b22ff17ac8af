// What keeps a host from launching work that is neither the launches themselves nor waits for the device.
#pragma once

#include <string_view>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// A call of the runtime that takes memory of the device or of pinned pages, or gives it back.
bool is_memory_call(std::string_view name) noexcept;

/// Waits for the input, and calls that take memory or give it back; disjoint.
Intervals held_up(const trace::Trace& trace);

}  // namespace headrace::analysis::device
