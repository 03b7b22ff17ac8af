// Names of ROCm's profilers, and those that the analyses have for the same.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::trace::rocm {

inline constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRocmCopies = {{
    {"HOST_TO_DEVICE", "Memcpy HtoD"},
    {"DEVICE_TO_HOST", "Memcpy DtoH"},
    {"DEVICE_TO_DEVICE", "Memcpy DtoD"},
    {"HOST_TO_HOST", "Memcpy HtoH"},
}};

/// By what the kind begins with, as PyTorch's profiler has them on ROCm. HSA calls nest in those of HIP.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kRocmCalls = {{
    {"HIP_", "cuda_runtime"},
    {"HSA_", "cuda_driver"},
    {"MARKER_", "user_annotation"},
    {"RCCL_", "user_annotation"},
    {"ROCDECODE_", "user_annotation"},
    {"ROCJPEG_", "user_annotation"},
    {"OMPT", "user_annotation"},
}};

/// "MEMORY_COPY_HOST_TO_DEVICE" -> "Memcpy HtoD"; what is no copy between host and devices stays as it is.
inline std::string copy_name(std::string_view operation) {
  for (const auto& [direction, name] : kRocmCopies) {
    if (operation.ends_with(direction)) return std::string(name);
  }
  return std::string(operation);
}

/// The category of a call or range of the host by its kind ("HIP_RUNTIME_API", "MARKER_CORE_RANGE_API").
/// Nothing for what is no event of a thread.
inline std::optional<std::string_view> call_category(std::string_view kind) {
  for (const auto& [prefix, category] : kRocmCalls) {
    if (kind.starts_with(prefix)) return category;
  }
  return std::nullopt;
}

}  // namespace headrace::trace::rocm
