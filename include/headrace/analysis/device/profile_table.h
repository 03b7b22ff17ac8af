// The tables that a profiler wrote beside its trace, by name: kernel_details, op_statistic, communication, ...
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/table.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::analysis::device {

/// Names of the tables that at least one of the profiles has, ascending: those of its CSV files without the
/// ending, and `communication`, `communication_bandwidth`, `communication_matrix` and `step_trace_time` where
/// the profile has these as JSON or in a database; also `kernel_details`, `api_statistic`, `memory_record`,
/// `operator_memory`, `npu_module_mem` and `counters` of a database alone.
std::vector<std::string> profile_tables(std::span<const trace::ascend::ProfileFolder> profiles);

/// A table of all profiles that have it; `rank` comes first (-1: unknown). Columns are found by their header,
/// never by their place, so those that a version adds are there, and missing ones are absent.
///
/// Names of columns are the header's in lower case with underscores. Units (`csv_columns.h`): durations become
/// seconds (`_s`), time stamps integer nanoseconds (`_ns`, exact), others keep theirs (`_mb`, `_kb`, `_pct`,
/// `_gbps`, `_mhz`). A column of nothing but integers holds integers, of numbers numbers, else texts. What is
/// absent ("N/A", nothing) is NaN in numbers, -1 in time stamps, an empty text.
///
/// Read twice, so memory is that of the table. UsageError if no profile has the table; it says which there
/// are. FormatError for a file that cannot be read.
Table profile_table(std::span<const trace::ascend::ProfileFolder> profiles, const std::string& name);

/// One CSV file as such a table, without `rank`. FormatError if it cannot be read or is empty.
Table csv_table(const std::string& path);

}  // namespace headrace::analysis::device
