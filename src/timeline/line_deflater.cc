#include "headrace/timeline/line_deflater.h"

#include <algorithm>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "timeline/line_codes.h"

namespace headrace::timeline {
namespace {

static_assert(std::endian::native == std::endian::little, "bits are stored as the machine stores integers");

/// Shorter matches cost as much as their bytes.
constexpr std::size_t kWorthwhile = 5;

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
  put_lengths(kLineCodes.literal_lengths);
  put_lengths(kLineCodes.distance_lengths);
}

namespace {

/// At most 19 + 18 bits.
void put_match(LineBits& bits, std::size_t length, std::size_t distance) noexcept {
  const Code match = kLineCodes.matches[length];
  const Code back = kLineCodes.distance_of(distance);
  bits.put(match.bits, match.count);
  bits.put(back.bits, back.count);
  bits.flush();
}

}  // namespace

void LineDeflater::append(const char* text, std::size_t bytes, std::size_t distance) noexcept {
  static_assert(4 * kLongestCode + 7 <= 64);
  LineBits bits = bits_;
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
    const Code literal = kLineCodes.literals[static_cast<unsigned char>(text[at++])];
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

void LineDeflater::fill_byte() noexcept {
  bits_.holding = (bits_.holding + 7) & ~7U;
  bits_.flush();
}

void LineDeflater::end_block(bool last) {
  bits_.put(kLineCodes.literals[kEndOfBlock].bits, kLineCodes.literals[kEndOfBlock].count);
  bits_.flush();
  if (last) {
    bits_.put(0b011, 3);  // the last block, fixed codes, and its end at once
    bits_.put(0, 7);
    fill_byte();
  } else {
    bits_.put(0, 3);  // a stored block of no bytes
    fill_byte();
    bits_.put(0xFFFF0000U, 32);
    bits_.flush();
  }
}

}  // namespace headrace::timeline
