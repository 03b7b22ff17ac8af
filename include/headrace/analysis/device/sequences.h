// Kernels that operators start one behind the other: candidates for fusing.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

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

/// For each rank one row per operator name and sequence of device work that its calls started, in the order
/// in which it ran, the most frequent first:
///
///     rank pattern works count kernel_s host_s
///
/// `pattern` is the operator's name and the names of the work, with "|" between them; `works` how many there
/// are; `kernel_s` and `host_s` are sums over all calls of the row, of the work's durations and of the
/// operator's.
Table sequences(std::span<const trace::Trace> traces, const SequencesOptions& options);

struct OperatorSequencesOptions {
  Scope scope;
  /// Work belongs to the innermost operator around its launch whose name begins so.
  std::string prefix = "aten::";
};

/// For each rank one row per operator and sequence of device work that its calls launched themselves, in the
/// order of the launches, the most frequent first:
///
///     rank operator sequence count mean_operator_delay_s mean_launch_delay_s
///
/// `sequence` has " -> " between the names. The delays are of the first work of each call: from the start of
/// the operator to that of the launch, and from there to the start of the work.
Table operator_sequences(std::span<const trace::Trace> traces, const OperatorSequencesOptions& options = {});

}  // namespace headrace::analysis::device
