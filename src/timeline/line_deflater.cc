#include "headrace/timeline/line_deflater.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace headrace::timeline {
namespace {

static_assert(std::endian::native == std::endian::little, "bits are stored as the machine stores integers");

// --- codes (RFC 1951, sections 3.2.2, 3.2.5 and 3.2.7) ---

constexpr std::size_t kLiterals = 286;
constexpr std::size_t kDistances = 30;
constexpr unsigned kEndOfBlock = 256;
constexpr std::size_t kShortestMatch = 3;
constexpr std::size_t kLongestMatch = 258;
/// Shorter ones cost as much as their bytes.
constexpr std::size_t kWorthwhile = 5;
/// Four codes and what a flush leaves fit into 64 bits.
constexpr unsigned kLongestCode = 14;

struct Code {
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
};

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

constexpr std::uint32_t reversed(std::uint32_t bits, unsigned count) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < count; ++i) result |= ((bits >> i) & 1U) << (count - 1 - i);
  return result;
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

struct Tables {
  std::array<unsigned char, kLiterals> literal_lengths = timeline::literal_lengths();
  std::array<unsigned char, kDistances> distance_lengths = timeline::distance_lengths();
  std::array<Code, kLiterals> literals = codes_of(literal_lengths);
  std::array<Code, kDistances> distances = codes_of(distance_lengths);
  /// By the length of a match: its code with the bits that follow it.
  std::array<Code, kLongestMatch + 1> matches{};
  /// The same of the distances that lines have.
  std::array<Code, 256> near{};

  /// At most 5 + 13 bits.
  Code of_distance(std::size_t distance) const noexcept {
    const auto before = static_cast<unsigned>(distance - 1);
    unsigned code = before;
    if (before >= 4) {
      const auto extra = static_cast<unsigned>(std::bit_width(before)) - 2;
      code = 2 * extra + (before >> extra);
    }
    const Range range = distance_range(code);
    const auto beyond = static_cast<std::uint32_t>(distance - range.least);
    return {distances[code].bits | beyond << distances[code].count, distances[code].count + range.extra};
  }

  Tables() {
    for (std::size_t length = kShortestMatch; length <= kLongestMatch; ++length) {
      unsigned code = 0;
      while (code + 1 < kLengthRanges.size() && kLengthRanges[code + 1].least <= length) ++code;
      const Code symbol = literals[257 + code];
      const auto beyond = static_cast<std::uint32_t>(length - kLengthRanges[code].least);
      matches[length] = {symbol.bits | beyond << symbol.count, symbol.count + kLengthRanges[code].extra};
    }
    for (std::size_t distance = 1; distance < near.size(); ++distance) near[distance] = of_distance(distance);
  }
};
const Tables kTables;

constexpr unsigned longest(const std::array<unsigned char, kLiterals>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

/// Equal bytes at the beginning of both, at most `most`; reads up to 15 bytes behind.
std::size_t common_prefix(const char* a, const char* b, std::size_t most) noexcept {
  std::size_t at = 0;
#ifdef __SSE2__
  for (; at < most; at += 16) {
    const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at));
    const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at));
    const auto equal = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right)));
    if (equal != 0xFFFF) return std::min(most, at + static_cast<std::size_t>(std::countr_one(equal)));
  }
#else
  for (; at < most; at += 8) {
    std::uint64_t left, right;
    std::memcpy(&left, a + at, 8);
    std::memcpy(&right, b + at, 8);
    if (left != right)
      return std::min(most, at + static_cast<std::size_t>(std::countr_zero(left ^ right)) / 8);
  }
#endif
  return most;
}

}  // namespace

LineDeflater::LineDeflater() : output_(kMostPending + 2 * kMostBytes + 1024), bits_{output_.data()} {}

inline void LineDeflater::Bits::flush() noexcept {
  std::memcpy(out, &held, 8);
  out += holding / 8;
  held >>= holding & ~7U;
  holding &= 7U;
}

inline void LineDeflater::Bits::fill_byte() noexcept {
  holding = (holding + 7) & ~7U;
  flush();
}

void LineDeflater::begin_block() {
  // Not the last block, dynamic codes; all symbols of both alphabets; all 19 lengths of the lengths' own
  // code.
  bits_.put(0b100, 3);
  bits_.put(kLiterals - 257, 5);
  bits_.put(kDistances - 1, 5);
  bits_.put(19 - 4, 4);
  // Lengths 0 to 15 have four bits each, the three symbols for repetitions (they come first) are not used.
  bits_.put(0, 9);
  bits_.flush();
  for (int length = 0; length < 16; ++length) {
    bits_.put(4, 3);
    bits_.flush();
  }
  const auto put_lengths = [this](const auto& lengths) {
    for (const unsigned char length : lengths) {
      bits_.put(reversed(length, 4), 4);
      bits_.flush();
    }
  };
  put_lengths(kTables.literal_lengths);
  put_lengths(kTables.distance_lengths);
}

inline void LineDeflater::put_match(Bits& bits, std::size_t length, std::size_t distance) noexcept {
  const Code match = kTables.matches[length];
  bits.put(match.bits, match.count);
  const Code back = distance < kTables.near.size() ? kTables.near[distance] : kTables.of_distance(distance);
  bits.put(back.bits, back.count);
  bits.flush();
}

void LineDeflater::append(const char* text, std::size_t bytes, std::size_t distance) noexcept {
  static_assert(4 * kLongestCode + 7 <= 64);
  Bits bits = bits_;
  std::size_t at = distance == 0 ? 0 : common_prefix(text, text - distance, bytes);
  if (at < kWorthwhile) {
    at = 0;
  } else {
    std::size_t left = at;
    for (; left >= kShortestMatch; left -= std::min(left, kLongestMatch))
      put_match(bits, std::min(left, kLongestMatch), distance);
    at -= left;
  }
  const auto put_literal = [&] {
    const Code literal = kTables.literals[static_cast<unsigned char>(text[at++])];
    bits.put(literal.bits, literal.count);
  };
  while (at + 4 <= bytes) {
    put_literal();
    put_literal();
    put_literal();
    put_literal();
    bits.flush();
  }
  while (at < bytes) put_literal();
  bits.flush();
  bits_ = bits;
}

void LineDeflater::end_block(bool last) {
  static_assert(longest(literal_lengths()) <= kLongestCode);
  bits_.put(kTables.literals[kEndOfBlock].bits, kTables.literals[kEndOfBlock].count);
  bits_.flush();
  if (last) {
    bits_.put(0b011, 3);  // the last block, fixed codes, and its end at once
    bits_.put(0, 7);
    bits_.fill_byte();
  } else {
    bits_.put(0, 3);  // a stored block of no bytes
    bits_.fill_byte();
    bits_.put(0xFFFF0000U, 32);
    bits_.flush();
  }
}

}  // namespace headrace::timeline
