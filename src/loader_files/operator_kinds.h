// What MindData's operators are called, and which of them can have several workers.
#pragma once

#include <string>
#include <string_view>

#include "headrace/profile/operator_profile.h"

namespace headrace::loader_files {

/// "MapOp" and "Map" are a map; what has no input is a source; other types keep their own word.
profile::Word<profile::OperatorKind> kind_of_type(std::string_view type, bool is_leaf);

/// num_parallel_workers does something for it.
bool runs_in_parallel(std::string_view type) noexcept;

/// The type without "Op".
std::string_view plain_type(std::string_view type) noexcept;

/// The thread that feeds a device's queue.
bool feeds_device(std::string_view type) noexcept;

}  // namespace headrace::loader_files
