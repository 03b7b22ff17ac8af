// Tables of figures and of the device's memory.
#pragma once

#include <string>

#include "headrace/loader_files/file_table.h"

namespace headrace::loader_files {

/// The numbers of a JSON object, one row each.
FileTable json_figures(const std::string& path);
/// Where memory stood at each operator of each graph.
FileTable memory_curve(const RankFolder& folder);
/// The tensors that were alive at the peak of each graph; columns are the members that the first one has.
FileTable memory_breakdown(const RankFolder& folder);

}  // namespace headrace::loader_files
