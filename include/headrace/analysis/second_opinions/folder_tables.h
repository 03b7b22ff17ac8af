// The tables in a folder of another profiler.
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/table.h"
#include "headrace/loader_files/file_table.h"

namespace headrace::analysis {

/// Names of the tables that the files of `rank` make; empty where the rank has no files.
std::vector<std::string> folder_tables(const std::string& folder, int rank);

/// UsageError for a table or column that there is not, FormatError where its file is damaged. Thread-safe.
Table folder_table(const std::string& folder, int rank, const std::string& name,
                   const loader_files::TableQuery& query);

/// The timeline that the profiler wrote for the rank, a Chrome trace; "" where there is none.
std::string folder_timeline(const std::string& folder, int rank);

}  // namespace headrace::analysis
