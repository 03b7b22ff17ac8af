// Types of file systems as a segment keeps them.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::profile {

/// Types of file systems as numbers from 1, for segments; one that is not listed is "other". 0 and numbers that
/// nobody wrote: "".
std::uint32_t file_system_code(std::string_view type) noexcept;
std::string_view file_system_name(std::uint32_t code) noexcept;

}  // namespace headrace::profile
