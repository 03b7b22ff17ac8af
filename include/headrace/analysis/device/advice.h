// What the device traces and the profiler's own tables say should be changed.
#pragma once

#include <span>

#include "headrace/analysis/rows.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Severities of advice, the most urgent first.
inline constexpr const char* kSeverities[] = {"high", "medium", "low", "none", "not checked"};

using AdviceColumns = ColumnList<
    Text<"rule">,
    Text<"severity", "high, medium, low: change something; none: nothing found; not checked: says why not.">,
    Text<"says">, Text<"figures", "The numbers behind it, with units and what they are of.">,
    Text<"cure", "Empty: nothing was found.">,
    Text<"source", "The rows or files that were looked at, and the threshold.">>;

/// One row or more per rule, the most urgent first, then in the rules' order.
///
/// The first rules work on any trace; the others need what the Ascend profiler records. Thresholds and their
/// reasons: advice_thresholds.h. `profiles` may be empty: then rules that need a table of the profiler are
/// not checked.
Table advice(std::span<const trace::Trace> traces,
             std::span<const trace::ascend::ProfileFolder> profiles = {});

}  // namespace headrace::analysis::device
