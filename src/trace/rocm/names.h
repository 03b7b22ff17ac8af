// What ROCm's profilers call things, and what the analyses call them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace::trace::rocm {

/// "MEMORY_COPY_HOST_TO_DEVICE" -> "Memcpy HtoD"; what is no copy between host and devices stays as it is.
std::string copy_name(std::string_view operation);

/// The category of a call or range of the host by its kind ("HIP_RUNTIME_API", "MARKER_CORE_RANGE_API").
/// Nothing for what is no event of a thread.
std::optional<std::string_view> call_category(std::string_view kind);

}  // namespace headrace::trace::rocm
