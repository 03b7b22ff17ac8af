// What changed between two traces, two ranks or two steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

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
