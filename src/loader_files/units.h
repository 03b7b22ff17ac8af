// Factors from the files' units.
#pragma once

namespace headrace::loader_files {

inline constexpr double kMillisecond = 1e-3;
inline constexpr double kMicrosecond = 1e-6;
/// In CPU files: 100 is one core.
inline constexpr double kPercent = 100;

}  // namespace headrace::loader_files
