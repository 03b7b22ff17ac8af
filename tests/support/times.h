// Times of fake clocks, in nanoseconds.
#pragma once

#include <cstdint>

namespace headrace {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kSecond = 1000 * kMs;

}  // namespace headrace
