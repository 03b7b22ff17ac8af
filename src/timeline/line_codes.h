// The Huffman codes of timeline lines: one fixed set, made for JSON with many digits (RFC 1951, section 3.2).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace headrace::timeline {

constexpr std::size_t kLiterals = 286;
constexpr std::size_t kDistances = 30;
constexpr unsigned kEndOfBlock = 256;
constexpr std::size_t kShortestMatch = 3;
constexpr std::size_t kLongestMatch = 258;
/// Bits of the longest code of a byte.
constexpr unsigned kLongestCode = 14;
/// And of a digit or the point.
constexpr unsigned kLongestDigit = 6;

/// The first bit of the code is the lowest.
struct Code {
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
};

struct LineCodes {
  std::array<unsigned char, kLiterals> literal_lengths;
  std::array<unsigned char, kDistances> distance_lengths;
  std::array<Code, kLiterals> literals;
  std::array<Code, kDistances> distances;
  /// By the length of a match: its code with the bits that follow it.
  std::array<Code, kLongestMatch + 1> matches;
  /// The same of the distances that lines have; `distance_code` knows them all.
  std::array<Code, 256> near;
  std::array<Code, 100> pairs;      ///< "00" to "99"
  std::array<Code, 1000> decimals;  ///< ".000" to ".999"

  LineCodes();
  /// At most 18 bits. `distance`: 1 to 32768.
  Code distance_code(std::size_t distance) const noexcept;
  Code distance_of(std::size_t distance) const noexcept {
    return distance < near.size() ? near[distance] : distance_code(distance);
  }
};

extern const LineCodes kLineCodes;

/// The lowest `count` bits, the other way round: how RFC 1951 packs codes.
constexpr std::uint32_t reversed(std::uint32_t bits, unsigned count) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < count; ++i) result |= ((bits >> i) & 1U) << (count - 1 - i);
  return result;
}

}  // namespace headrace::timeline
