// What each step's time went into, by the roles of PyTorch's TensorBoard plugin.
#pragma once

#include <span>

#include "headrace/analysis/table.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// The shares of the plugin above which it speaks up.
struct StepBreakdownOptions {
  double input_share = 0.05;          ///< of the step in the data loader
  double communication_share = 0.10;  ///< of the step in communication alone
  double utilisation_share = 0.50;    ///< of the span of the steps with a kernel running
};

struct StepBreakdown {
  /// One row per step:
  ///
  ///     rank step kernel_s memcpy_s memset_s communication_s runtime_s data_loader_s cpu_s other_s total_s
  ///
  /// Each moment of a step counts for the first of the roles that is active then, in that order: time in
  /// `data_loader_s` is time in which the host waited for a batch and neither the device nor its runtime did
  /// anything. The roles sum to the step.
  Table steps;
  /// The means over the steps: rank role mean_s share_pct.
  Table average;
  /// What stands out: rank finding share_pct says.
  Table findings;
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
StepBreakdown step_breakdown(std::span<const trace::Trace> traces, const StepBreakdownOptions& options = {});

}  // namespace headrace::analysis::device
