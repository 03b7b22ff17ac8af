// Bytes that zlib compressed as a whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::trace {

/// What `compressed` holds; nothing if it is damaged or has more than `most` bytes.
std::optional<std::string> inflated_block(std::string_view compressed, std::size_t most);

}  // namespace headrace::trace
