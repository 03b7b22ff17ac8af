// Reads the SQLite file of an Ascend profile into the columns that its trace_view.json gives.
#pragma once

#include <string>
#include <string_view>

#include "headrace/trace/reader.h"

namespace headrace::trace::ascend {

/// True for the first bytes of a SQLite file; 16 are enough.
bool is_database(std::string_view first_bytes) noexcept;

/// `ascend_pytorch_profiler_N.db`, `ascend_mindspore_profiler_N.db`, `msprof_*.db`. Names, times in integer
/// nanoseconds, rows, streams, connections and the two ends of the task queue are those of trace_view.json;
/// counters are left out, and copies have a direction and bytes only where the file has MEMCPY_INFO. A table
/// or a column that is missing is said in `notes.remarks`.
///
/// Memory beside the columns: the texts once, and about 50 bytes for each task with a name of its own. Throws
/// FormatError for a file that is no database, is damaged, or has no table of events.
TraceFile read_database(const std::string& path, const ReadOptions& options = {});

/// Reads one in memory; `name` is what errors call it.
TraceFile read_database_bytes(std::string_view bytes, const std::string& name,
                              const ReadOptions& options = {});

}  // namespace headrace::trace::ascend
