// The tables of a rank's files: steps, batches, operators of the device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/loader_files/profiler_folder.h"

namespace headrace::loader_files {

/// Times in seconds end in `_s`, shares in `_share`; a missing number is NaN.
struct FileColumn {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
};

struct FileTable {
  std::vector<FileColumn> columns;  ///< of one length
  std::vector<std::string> notes;

  std::size_t rows() const noexcept;
};

/// Names of the tables that the rank's files make, in a fixed order. Only looks at which files there are.
std::vector<std::string> table_names(const RankFolder& folder);

/// UsageError for a name that is not among table_names(); FormatError where the file is damaged.
FileTable read_table(const RankFolder& folder, std::string_view name);

/// Whether there is a table of ranks: two or more of them have a step trace, or files of a parallel job.
bool has_ranks_table(const ProfilerFolder& folder);

/// One row a rank: its mean step (of the step trace), how the job's mode divides it, what its collectives cost and
/// its speed in 10^9 FLOP/s (`gflops`). A figure that a rank's files do not tell is NaN, a column that no rank has is left out.
/// Files that cannot be read are noted.
FileTable ranks_table(const ProfilerFolder& folder);

/// What MindInsight's tables could do: rows in which a text has `search` (in any case), in groups of one
/// column's values (counts and times are added, others left out), sorted by a column, largest first.
struct TableQuery {
  std::string search;    ///< "": all rows
  std::string group_by;  ///< "": no groups
  std::string sort_by;   ///< "": as they are
};

/// UsageError for a column that the table does not have.
FileTable queried(FileTable table, const TableQuery& query);

}  // namespace headrace::loader_files
