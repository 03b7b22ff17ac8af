// Numbers as they stand in JSON, read without the detour over floating point, and times that no trace has.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::trace {

/// About the year 2096; the distance of any two times fits into 64 bits, and sums beyond could overflow.
inline constexpr std::int64_t kFurthestNs = 4'000'000'000'000'000'000;
/// Four months.
inline constexpr std::int64_t kLongestNs = 10'000'000'000'000'000;

enum class NumberError : std::uint8_t { none, not_a_number, out_of_range };

/// Microseconds with any number of decimals to nanoseconds, rounded to the nearest: exact where a double of
/// today's Unix time in microseconds has steps of 0.25. Exponents are understood, by way of a double.
NumberError to_nanoseconds(std::string_view token, std::int64_t& ns) noexcept;

/// An integer; 4096.0 and 4e3 are integers too.
NumberError to_integer(std::string_view token, std::int64_t& value) noexcept;

/// A finite number. NaN and Infinity are none in JSON, however they are written.
NumberError to_number(std::string_view token, double& value) noexcept;

}  // namespace headrace::trace
