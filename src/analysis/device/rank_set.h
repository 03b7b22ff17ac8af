// Sets of ranks as the vendor's tool writes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace::analysis::device {

/// The ranks in "(0, 1, 2)", in their order.
std::vector<std::int64_t> ranks_in(std::string_view text);

/// Adds a set that is neither empty nor there already.
void add_set(std::vector<std::int64_t> ranks, std::vector<std::vector<std::int64_t>>& sets);

}  // namespace headrace::analysis::device
