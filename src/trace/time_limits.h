// Times that no trace has: beyond them sums could overflow.
#pragma once

#include <cstdint>

namespace headrace::trace {

/// About the year 2096; the distance of any two times fits into 64 bits.
inline constexpr std::int64_t kFurthestNs = 4'000'000'000'000'000'000;
/// Four months.
inline constexpr std::int64_t kLongestNs = 10'000'000'000'000'000;

}  // namespace headrace::trace
