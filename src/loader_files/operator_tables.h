// Tables of the operators that a device ran.
#pragma once

#include "headrace/loader_files/file_table.h"

namespace headrace::loader_files {

/// Types of operators of an Ascend device's cores, with their share of all and the mean of a call.
FileTable aicore_types(const RankFolder& folder);
/// Single operators, with what the graph's file says of each.
FileTable aicore_operators(const RankFolder& folder);
FileTable aicpu_operators(const RankFolder& folder);

}  // namespace headrace::loader_files
