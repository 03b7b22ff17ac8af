// What changed between two traces, two ranks or two steps.
#pragma once

#include <cstdint>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

enum class Side : std::uint8_t { both, host, device };

struct DiffOptions {
  /// The parts of the two traces that are compared, one step of each for instance.
  Scope control;
  Scope test;
  Side side = Side::both;
  /// Puts together what has the same short name (see short_name.h).
  bool short_names = false;
};

/// One row per name, the largest change of time first:
///
///     name control_calls control_s test_calls test_s diff_calls diff_s calls_change change
///
/// Calls and the sum of their durations on both sides, 0 if a side does not have the name; `diff` is test
/// minus control. `calls_change` is "+", "-" or "=". `change` is "added" or "deleted" for names that only one
/// side has, else "increased", "decreased" or "unchanged", by the number of calls. Durations of callers
/// contain those of what they call.
Table diff(const trace::Trace& control, const trace::Trace& test, const DiffOptions& options = {});

}  // namespace headrace::analysis::device
