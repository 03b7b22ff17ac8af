// How near operators come to what the device could do with their shapes.
#pragma once

#include <optional>
#include <span>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct RooflineOptions {
  Scope scope;
  /// Of the device, instead of those that are known by its name: dense, of the type of the operator's inputs.
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

}  // namespace headrace::analysis::device
