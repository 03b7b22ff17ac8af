// Operators of the framework: their cost on host and device, how near they come to its peak, the kernels that
// they start one behind the other, and calls by name in two traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headrace/analysis/device/device_work.h"
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
/// operator has it. Totals of an operator that calls itself count it twice, as PyTorch's do; but a call that
/// does nothing but make one call of the same name is one with it. `ProfilerStep#7` is `ProfilerStep*`.
///
/// Input shapes are there where the profiler recorded them (`record_shapes=True`), stacks where it recorded
/// Python functions (`with_stack=True`), memory with `profile_memory=True`; notes say what is missing.
Table operators(std::span<const trace::Trace> traces, const OperatorsOptions& options = {});

struct RooflineOptions {
  Scope scope;
  /// Peaks of the device, instead of those known by its name: dense, of the type of the operator's inputs.
  std::optional<double> peak_tflops;
  std::optional<double> peak_gbps;
};

using RooflineColumns = ColumnList<
    Integer<"rank">, Text<"name">,
    Text<"kind", "gemm, attention, convolution, normalisation or elementwise.">, Text<"input_shapes">,
    Text<"input_type", "Of the first input.">, Integer<"calls">,
    Number<"device_s", "Of the work that was launched inside.">,
    Number<"gflops", "Of one call: 1e9 floating-point operations.">,
    Number<"call_bytes", "Of one call: inputs read once, outputs written once.">,
    Number<"tflops", "Reached: 1e12 operations a second.">, Number<"bandwidth_gbps">,
    Number<"intensity", "Floating-point operations per byte.">,
    Text<"bound",
         "What limits at these shapes: compute or memory; empty if the device's peaks are not known.">,
    Number<"roofline_s", "What the calls would take at the device's peak.">,
    Number<"roofline_pct", "roofline_s of device_s: far below 100, the kernel wastes what the device has.">>;

/// One row per operator, shapes and type, the longest device time first; operators whose cost is not known by
/// a formula are left out, and a note says how much device time they have.
///
///     roofline_s = calls x max(flops / peak, bytes / peak bandwidth)
///
/// Copies between host and device do not count: no figure of the device's memory limits them. Work belongs to
/// the innermost operator around its launch whose cost is known. Formulas and peaks: operator_cost.h,
/// device_peaks.h. Needs shapes (`record_shapes=True`), for convolutions and causal attention also the
/// scalars that are recorded with them.
Table roofline(std::span<const trace::Trace> traces, const RooflineOptions& options = {});

struct SequencesOptions {
  Scope scope;
  /// Operators whose name contains this; of several that call each other, the outermost.
  std::string operator_name;
  /// Only calls that started so many pieces of device work.
  std::size_t shortest = 3;
  /// At most so many rows per rank; 0: all.
  std::size_t most = 5;
};

using SequencesColumns =
    ColumnList<Integer<"rank">, Text<"pattern", "The operator and its work, with \"|\" between the names.">,
               Integer<"works">, Integer<"count", "Calls.">,
               Number<"kernel_s", "Of the work, summed over the calls.">,
               Number<"host_s", "Of the operator, summed over the calls.">>;

/// For each rank one row per operator name and sequence of device work that its calls started, in the order
/// in which it ran, the most frequent first.
Table sequences(std::span<const trace::Trace> traces, const SequencesOptions& options);

struct OperatorSequencesOptions {
  Scope scope;
  /// Work belongs to the innermost operator around its launch whose name begins so.
  std::string prefix = "aten::";
};

using OperatorSequencesColumns =
    ColumnList<Integer<"rank">, Text<"operator">, Text<"sequence">, Integer<"count", "Calls.">,
               Number<"mean_operator_delay_s", "From the start of the operator to that of the launch.">,
               Number<"mean_launch_delay_s", "From the start of the launch to that of the work.">>;

/// For each rank one row per operator and sequence of device work that its calls launched themselves, in the
/// order of the launches, the most frequent first. The delays are of the first work of each call.
Table operator_sequences(std::span<const trace::Trace> traces, const OperatorSequencesOptions& options = {});

enum class Side : std::uint8_t { both, host, device };

struct DiffOptions {
  /// The parts of the two traces that are compared, one step of each for instance.
  Scope control;
  Scope test;
  Side side = Side::both;
  /// Puts together what has the same short name.
  bool short_names = false;
};

using DiffColumns =
    ColumnList<Text<"name">, Integer<"control_calls">, Number<"control_s">, Integer<"test_calls">,
               Number<"test_s">, Integer<"diff_calls", "Test minus control.">, Number<"diff_s">,
               Text<"calls_change", "+, - or =.">,
               Text<"change",
                    "added or deleted: only one side has the name; else increased, decreased or "
                    "unchanged, by the number of calls.">>;

/// One row per name, the largest change of time first: calls and the sum of their durations on both sides, 0
/// if a side does not have the name. Durations of callers contain those of what they call.
Table diff(const trace::Trace& control, const trace::Trace& test, const DiffOptions& options = {});

/// A C++ function's name without its template arguments, parameters and return type:
/// "void at::native::gemm_kernel<float, 4>(float*)" becomes "at::native::gemm_kernel", and ROCm's "[clone
/// .kd]" goes too. Copies, fills, and names without brackets stay as they are. What follows a bracket that is
/// never closed (names are cut by some profilers) is dropped.
std::string short_name(std::string_view name);

}  // namespace headrace::analysis::device
