// What each operator of the framework cost, on the host and on the device.
#pragma once

#include <cstddef>
#include <span>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/table.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct OperatorsOptions {
  Scope scope;
  bool by_input_shapes = false;  ///< calls with other input shapes in other rows
  /// Calls from other Python stacks in other rows, told apart by so many of the innermost frames; 0: not at
  /// all.
  std::size_t stack_frames = 0;
};

/// One row per operator, annotation or runtime call, the longest self time first:
///
///     rank name [input_shapes] [stack] calls host_total_s host_self_s host_mean_s device_total_s
///     device_self_s host_memory_bytes host_memory_self_bytes device_memory_bytes device_memory_self_bytes
///
/// The figures of `key_averages()` of PyTorch's profiler. Self: without what ran inside, on the same thread.
/// Device time: of the work that was launched inside (self: not inside a further operator); a runtime call
/// has none of its own, its operator has it. Memory: bytes allocated less bytes freed inside. Totals of an
/// operator that calls itself count it twice, as PyTorch's do; but a call that does nothing but make one call
/// of the same name is one with it. `ProfilerStep#7` is `ProfilerStep*`.
///
/// Input shapes are there where the profiler recorded them (`record_shapes=True`), stacks where it recorded
/// Python functions (`with_stack=True`), memory with `profile_memory=True`; notes say what is missing.
Table operators(std::span<const trace::Trace> traces, const OperatorsOptions& options = {});

}  // namespace headrace::analysis::device
