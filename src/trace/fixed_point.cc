#include "trace/fixed_point.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

namespace headrace::trace {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The next eight bytes.
std::uint64_t load_eight(const char* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// All of them are '0' to '9': the upper half of each byte is 3, and stays so when 6 is added.
bool are_digits(std::uint64_t eight) noexcept {
  constexpr std::uint64_t kUpper = 0xf0f0f0f0f0f0f0f0ULL;
  return ((eight & kUpper) | ((eight + 0x0606060606060606ULL) & kUpper) >> 4) == 0x3333333333333333ULL;
}

/// Their value: neighbours are put together, then pairs, then fours.
std::int64_t value_of_digits(std::uint64_t eight) noexcept {
  eight = (eight & 0x0f0f0f0f0f0f0f0fULL) * 2561 >> 8;
  eight = (eight & 0x00ff00ff00ff00ffULL) * 6553601 >> 16;
  return static_cast<std::int64_t>((eight & 0x0000ffff0000ffffULL) * 42949672960001ULL >> 32);
}

/// Up to 18 digits, which fit whatever they are.
bool to_short_integer(std::string_view token, std::int64_t& value) noexcept {
  const bool negative = token.starts_with('-');
  token.remove_prefix(negative);
  if (token.empty() || token.size() > 18) return false;
  std::int64_t number = 0;
  for (const char c : token) {
    if (!is_digit(c)) return false;
    number = number * 10 + (c - '0');
  }
  value = negative ? -number : number;
  return true;
}

/// A double to the nearest integer, where there is one.
NumberError round_to(double value, std::int64_t& rounded) noexcept {
  if (!(std::abs(value) < 9.2e18)) return NumberError::out_of_range;
  rounded = std::llround(value);
  return NumberError::none;
}

}  // namespace

NumberError to_number(std::string_view token, double& value) noexcept {
  const std::string_view digits = token.starts_with('-') ? token.substr(1) : token;
  if (digits.empty() || !is_digit(digits.front())) return NumberError::not_a_number;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (end != token.data() + token.size()) return NumberError::not_a_number;
  // Too small for a double is as good as zero; from_chars does not say which of the two it was.
  if (error == std::errc::result_out_of_range) return NumberError::out_of_range;
  return NumberError::none;
}

NumberError to_integer(std::string_view token, std::int64_t& value) noexcept {
  if (to_short_integer(token, value)) return NumberError::none;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (end == token.data() + token.size() && end != token.data()) {
    return error == std::errc() ? NumberError::none : NumberError::out_of_range;
  }
  double number = 0;
  if (const NumberError wrong = to_number(token, number); wrong != NumberError::none) return wrong;
  if (number != std::trunc(number)) return NumberError::not_a_number;
  return round_to(number, value);
}

NumberError to_nanoseconds(std::string_view token, std::int64_t& ns) noexcept {
  const char* at = token.data();
  const char* const end = at + token.size();
  const bool negative = at < end && *at == '-';
  at += negative;
  if (at == end || !is_digit(*at)) return NumberError::not_a_number;
  std::int64_t whole = 0;
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::int64_t kEightDigits = 100'000'000;
    while (end - at >= 8 && whole < kLargest / kEightDigits && are_digits(load_eight(at))) {
      whole = whole * kEightDigits + value_of_digits(load_eight(at));
      at += 8;
    }
  }
  for (; at < end && is_digit(*at); ++at) {
    if (whole > kLargest / 10000) return NumberError::out_of_range;
    whole = whole * 10 + (*at - '0');
  }
  if (whole >= kLargest / 1000) return NumberError::out_of_range;  // with a fraction it may not fit
  std::int64_t fraction = 0;
  if (at < end && *at == '.') {
    ++at;
    if (at == end || !is_digit(*at)) return NumberError::not_a_number;
    for (int place = 0; place < 3; ++place)
      fraction = fraction * 10 + (at < end && is_digit(*at) ? *at++ - '0' : 0);
    if (at < end && is_digit(*at)) fraction += *at >= '5';
    while (at < end && is_digit(*at)) ++at;
  }
  if (at != end) {
    double number = 0;
    if (const NumberError wrong = to_number(token, number); wrong != NumberError::none) return wrong;
    return round_to(number * 1000, ns);
  }
  ns = whole * 1000 + fraction;
  if (negative) ns = -ns;
  return NumberError::none;
}

}  // namespace headrace::trace
