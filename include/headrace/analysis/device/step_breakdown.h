// What each step's time went into, by the roles of PyTorch's TensorBoard plugin.
#pragma once

#include <span>

#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

using StepBreakdownColumns =
    ColumnList<Integer<"rank">, Integer<"step">, Number<"kernel_s">, Number<"memcpy_s">, Number<"memset_s">,
               Number<"communication_s">, Number<"runtime_s">,
               Number<"data_loader_s",
                      "The host waited for a batch, and neither the device nor its runtime did anything.">,
               Number<"cpu_s">, Number<"other_s">, Number<"total_s">>;
using StepBreakdownAverageColumns =
    ColumnList<Integer<"rank">, Text<"role">, Number<"mean_s">, Number<"share_pct", "Of the steps.">>;

struct StepBreakdown {
  /// One row per step. Each moment of a step counts for the first of the roles that is active then, in the
  /// order of the columns. The roles sum to the step.
  Table steps;
  /// The means over the steps.
  Table average;
};

/// Roles (source of the definition: the plugin's event parser and its overall view): kernels; copies; fills;
/// communication (calls of `nccl:` and `gloo:` collectives, and kernels that they launched); calls of the
/// device's runtime (not of its driver); `enumerate(DataLoader)#...__next__`; other operators and
/// annotations; nothing of all that.
///
/// A step begins where the work of the one before ended and ends with its own work on the device, so that
/// what the device still has to do is not the next step's; one that ended before the one before it has no
/// time. Steps at the end whose work on the device is missing are left out. Without a ProfilerStep the whole
/// trace is one step 0; without work on a device steps are those of the host, also where they overlap.
StepBreakdown step_breakdown(std::span<const trace::Trace> traces);

}  // namespace headrace::analysis::device
