// Digits as text, and as text together with its Huffman codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "headrace/timeline/line_deflater.h"
#include "timeline/line_codes.h"

namespace headrace::timeline {

/// "00" to "99".
inline constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

/// ".000" to ".999".
inline constexpr auto kDecimals = [] {
  std::array<char, 4000> decimals{};
  for (std::size_t i = 0; i < 1000; ++i) {
    decimals[4 * i] = '.';
    decimals[4 * i + 1] = static_cast<char>('0' + i / 100);
    decimals[4 * i + 2] = static_cast<char>('0' + i / 10 % 10);
    decimals[4 * i + 3] = static_cast<char>('0' + i % 10);
  }
  return decimals;
}();

inline char* put_text(char* at, std::string_view text) noexcept {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

/// Puts text and its code, together.
struct CodedText {
  char* at;
  LineBits bits;

  void put(Code code) noexcept { bits.put(code.bits, code.count); }
  void pair(std::uint32_t value) noexcept {
    at = put_text(at, {kPairs.data() + 2 * value, 2});
    put(kLineCodes.pairs[value]);
  }
  /// Without a leading zero.
  void leading(std::uint32_t value) noexcept {
    if (value >= 10) return pair(value);
    *at++ = static_cast<char>('0' + value);
    put(kLineCodes.literals['0' + value]);
  }
  void decimals(std::uint32_t value) noexcept {
    at = put_text(at, {kDecimals.data() + 4 * value, 4});
    put(kLineCodes.decimals[value]);
  }
  void match(std::size_t length, Code distance) noexcept {
    put(kLineCodes.matches[length]);
    put(distance);
    bits.flush();
  }
};

}  // namespace headrace::timeline
