// Kernels that operators start one behind the other: candidates for fusing.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

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

}  // namespace headrace::analysis::device
