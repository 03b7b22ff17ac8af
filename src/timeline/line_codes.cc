#include "timeline/line_codes.h"

#include <algorithm>

namespace headrace::timeline {
namespace {

/// Of lengths 3 to 258 and of distances: the least value of a code and how many bits follow it.
struct Range {
  unsigned least;
  unsigned extra;
};
constexpr std::array<Range, 29> kLengthRanges{
    {{3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
     {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
     {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}}};

constexpr Range distance_range(unsigned code) {
  if (code < 4) return {code + 1, 0};
  const unsigned extra = code / 2 - 1;
  return {((2 + (code & 1U)) << extra) + 1, extra};
}

/// How often a symbol is met in lines of slices, counters and arrows, about.
constexpr unsigned weight(unsigned symbol) {
  if (symbol >= '0' && symbol <= '9') return 1000;
  if (symbol == '.') return 500;
  if (symbol == '}' || symbol == ',' || symbol == ':' || symbol == '"') return 160;
  if (symbol >= 'a' && symbol <= 'z') return 60;
  if (symbol == '{' || symbol == '\n' || symbol == '_' || symbol == '-' || symbol == ' ') return 40;
  if (symbol >= 'A' && symbol <= 'Z') return 8;
  if (symbol == kEndOfBlock) return 4;
  if (symbol >= 257) {
    const unsigned least = kLengthRanges[symbol - 257].least;
    return least >= 67 && least < 131 ? 400 : least >= 7 && least <= 10 ? 300 : least < 67 ? 30 : 10;
  }
  return 4;
}

/// Lengths of a Huffman code; with these weights none is longer than kLongestCode.
constexpr std::array<unsigned char, kLiterals> literal_lengths() {
  std::array<unsigned, 2 * kLiterals - 1> weights{};
  std::array<std::size_t, 2 * kLiterals - 1> parents{};
  for (unsigned symbol = 0; symbol < kLiterals; ++symbol) weights[symbol] = weight(symbol);
  for (std::size_t made = kLiterals; made < weights.size(); ++made) {
    // The two lightest that have no parent yet.
    std::size_t first = made, second = made;
    for (std::size_t i = 0; i < made; ++i) {
      if (parents[i] != 0) continue;
      if (first == made || weights[i] < weights[first]) {
        second = first;
        first = i;
      } else if (second == made || weights[i] < weights[second]) {
        second = i;
      }
    }
    parents[first] = parents[second] = made;
    weights[made] = weights[first] + weights[second];
  }
  std::array<unsigned char, kLiterals> lengths{};
  for (std::size_t symbol = 0; symbol < kLiterals; ++symbol) {
    for (std::size_t at = symbol; parents[at] != 0; at = parents[at]) ++lengths[symbol];
  }
  return lengths;
}

/// Thirty codes: those of 65 to 128 bytes, a line's usual length, have four bits, the others five.
constexpr std::array<unsigned char, kDistances> distance_lengths() {
  std::array<unsigned char, kDistances> lengths{};
  lengths.fill(5);
  lengths[12] = lengths[13] = 4;
  return lengths;
}

/// Canonical codes of these lengths, first bit lowest.
template <std::size_t N>
constexpr std::array<Code, N> codes_of(const std::array<unsigned char, N>& lengths) {
  std::array<Code, N> codes{};
  std::uint32_t next = 0;
  for (unsigned length = 1; length <= 15; ++length) {
    next <<= 1U;
    for (std::size_t symbol = 0; symbol < N; ++symbol) {
      if (lengths[symbol] == length) codes[symbol] = {reversed(next++, length), length};
    }
  }
  return codes;
}

constexpr auto kLiteralLengths = literal_lengths();
static_assert(*std::max_element(kLiteralLengths.begin(), kLiteralLengths.end()) <= kLongestCode);
static_assert(*std::max_element(&kLiteralLengths['0'], &kLiteralLengths['9'] + 1) <= kLongestDigit);
static_assert(kLiteralLengths['.'] <= kLongestDigit);

/// `first`, then `second`.
constexpr Code joined(Code first, Code second) {
  return {first.bits | second.bits << first.count, first.count + second.count};
}

}  // namespace

const LineCodes kLineCodes;

LineCodes::LineCodes()
    : literal_lengths(kLiteralLengths),
      distance_lengths(timeline::distance_lengths()),
      literals(codes_of(literal_lengths)),
      distances(codes_of(distance_lengths)),
      matches{},
      near{} {
  for (std::size_t length = kShortestMatch; length <= kLongestMatch; ++length) {
    unsigned code = 0;
    while (code + 1 < kLengthRanges.size() && kLengthRanges[code + 1].least <= length) ++code;
    const auto [least, extra] = kLengthRanges[code];
    matches[length] = joined(literals[257 + code], {static_cast<std::uint32_t>(length - least), extra});
  }
  for (std::size_t distance = 1; distance < near.size(); ++distance) near[distance] = distance_code(distance);
  const auto digit = [this](std::size_t value) { return literals['0' + value]; };
  for (std::size_t i = 0; i < 100; ++i) pairs[i] = joined(digit(i / 10), digit(i % 10));
  for (std::size_t i = 0; i < 1000; ++i)
    decimals[i] = joined(joined(literals['.'], digit(i / 100)), pairs[i % 100]);
}

Code LineCodes::distance_code(std::size_t distance) const noexcept {
  const auto before = static_cast<unsigned>(distance - 1);
  unsigned code = before;
  if (before >= 4) {
    const auto extra = static_cast<unsigned>(std::bit_width(before)) - 2;
    code = 2 * extra + (before >> extra);
  }
  const auto [least, extra] = distance_range(code);
  return joined(distances[code], {static_cast<std::uint32_t>(distance - least), extra});
}

}  // namespace headrace::timeline
