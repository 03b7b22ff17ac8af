// What each operator of the framework cost, on the host and on the device.
#pragma once

#include <cstddef>
#include <span>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct OperatorsOptions {
  Scope scope;
  bool by_input_shapes = false;  ///< calls with other input shapes in other rows
  /// Calls from other Python stacks in other rows, told apart by so many of the innermost frames; 0: not at
  /// all.
  std::size_t stack_frames = 0;
};

using OperatorsColumns =
    ColumnList<Integer<"rank">, Text<"name">, Optional<Text<"input_shapes">>,
               Optional<Text<"stack", "Python functions, the innermost first.">>, Integer<"calls">,
               Number<"host_total_s">, Number<"host_self_s", "Without what ran inside, on the same thread.">,
               Number<"host_mean_s">, Number<"device_total_s", "Of the work that was launched inside.">,
               Number<"device_self_s", "Not inside a further operator.">,
               Integer<"host_memory_bytes", "Allocated less freed inside.">,
               Integer<"host_memory_self_bytes">, Integer<"device_memory_bytes">,
               Integer<"device_memory_self_bytes">>;

/// One row per operator, annotation or runtime call, the longest self time first.
///
/// The figures of `key_averages()` of PyTorch's profiler. A runtime call has no device time of its own, its
/// operator has it. Totals of an operator that calls itself count it twice, as PyTorch's do; but a call that does nothing but make one call
/// of the same name is one with it. `ProfilerStep#7` is `ProfilerStep*`.
///
/// Input shapes are there where the profiler recorded them (`record_shapes=True`), stacks where it recorded
/// Python functions (`with_stack=True`), memory with `profile_memory=True`; notes say what is missing.
Table operators(std::span<const trace::Trace> traces, const OperatorsOptions& options = {});

}  // namespace headrace::analysis::device
