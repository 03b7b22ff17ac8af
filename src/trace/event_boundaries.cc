#include "headrace/trace/event_boundaries.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace::trace {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::uint64_t kEvenBits = 0x5555555555555555ULL;

/// std::popcount is a call into a table where the compiler may not assume the instruction; this took a third
/// of the scan.
std::uint64_t count_bits(std::uint64_t bits) noexcept {
  bits -= bits >> 1 & kEvenBits;
  bits = (bits & 0x3333333333333333ULL) + (bits >> 2 & 0x3333333333333333ULL);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
  return bits * 0x0101010101010101ULL >> 56;
}

/// Bit i is the xor of bits 0..i: set from each opening quote up to its closing one.
std::uint64_t prefix_xor(std::uint64_t bits) noexcept {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

/// The bytes that follow an odd number of backslashes; `carry` is 1 when the byte after this block is one of
/// them.
std::uint64_t escaped_bytes(std::uint64_t backslashes, std::uint64_t& carry) noexcept {
  if (backslashes == 0) {
    const std::uint64_t escaped = carry;
    carry = 0;
    return escaped;
  }
  backslashes &= ~carry;  // an escaped backslash escapes nothing
  const std::uint64_t follows = backslashes << 1 | carry;
  const std::uint64_t odd_starts = backslashes & ~kEvenBits & ~follows;
  // Adding the starts to the runs carries out of each run that begins at an odd bit, which flips its parity.
  const std::uint64_t sum = odd_starts + backslashes;
  carry = sum < backslashes ? 1 : 0;
  return (kEvenBits ^ sum << 1) & follows;
}

/// Whether the byte behind `length` is escaped, in a block that is cut short.
std::uint64_t ends_in_escape(const char* text, std::size_t length, std::uint64_t carry) noexcept {
  std::size_t run = 0;
  while (run < length && text[length - 1 - run] == '\\') ++run;
  return (run + (run == length ? carry : 0)) % 2;
}

constexpr std::array<std::string_view, 10> kEventKeys = {"ph", "name", "cat", "pid",  "tid",
                                                         "ts", "dur",  "id",  "args", "s"};

/// An event is rarely longer; where one is, EventBoundaries finds its end.
constexpr std::size_t kLookBack = std::size_t{64} << 10;

bool is_json_blank(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// True when `text[brace]` is the brace in `}, {"name":`.
bool begins_event(std::string_view text, std::size_t brace) noexcept {
  std::size_t before = brace;
  while (before > 0 && is_json_blank(text[before - 1])) --before;
  if (before == 0 || text[before - 1] != ',') return false;
  --before;
  while (before > 0 && is_json_blank(text[before - 1])) --before;
  if (before == 0 || text[before - 1] != '}') return false;

  std::size_t at = brace + 1;
  while (at < text.size() && is_json_blank(text[at])) ++at;
  if (at == text.size() || text[at] != '"') return false;
  const std::string_view rest = text.substr(at + 1);
  for (const std::string_view key : kEventKeys) {
    if (!rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != '"') continue;
    std::size_t colon = key.size() + 1;
    while (colon < rest.size() && is_json_blank(rest[colon])) ++colon;
    return colon < rest.size() && rest[colon] == ':';
  }
  return false;
}

}  // namespace

/// One bit per byte of a block.
struct EventBoundaries::Block {
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t opens = 0;   // { [
  std::uint64_t closes = 0;  // } ]

  explicit Block(const char* text) noexcept {
#if defined(__SSE2__)
    for (int part = 0; part < 4; ++part) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text) + part);
      // Braces and brackets differ in one bit.
      const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
      quotes |= mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), part);
      backslashes |= mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')), part);
      opens |= mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')), part);
      closes |= mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')), part);
    }
#else
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      const char folded = static_cast<char>(text[i] | 0x20);
      if (text[i] == '"') quotes |= bit;
      if (text[i] == '\\') backslashes |= bit;
      if (folded == '{') opens |= bit;
      if (folded == '}') closes |= bit;
    }
#endif
  }

#if defined(__SSE2__)
  static std::uint64_t mask(__m128i equal, int part) noexcept {
    return std::uint64_t{static_cast<std::uint16_t>(_mm_movemask_epi8(equal))} << (16 * part);
  }
#endif
};

EventBoundaries::Found EventBoundaries::scan(std::string_view piece, std::size_t most_events) noexcept {
  Found found;
  char tail[kBlock];
  for (std::size_t base = 0; base < piece.size(); base += kBlock) {
    const std::size_t length = std::min(kBlock, piece.size() - base);
    const char* text = piece.data() + base;
    if (length < kBlock) {
      std::memset(tail, ' ', kBlock);
      std::memcpy(tail, text, length);
      text = tail;
    }
    const Block block(text);
    std::uint64_t escaped = escaped_;
    const std::uint64_t quotes = block.quotes & ~escaped_bytes(block.backslashes, escaped);
    const std::uint64_t strings = prefix_xor(quotes) ^ in_string_;
    in_string_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(strings) >> 63);
    // The padding of a last block would swallow what its last byte escapes in the next piece.
    if (length < kBlock) escaped = ends_in_escape(text, length, escaped_);
    escaped_ = escaped;
    const std::uint64_t opens = block.opens & ~strings;
    const std::uint64_t closes = block.closes & ~strings;
    if ((opens | closes) == 0) continue;
    // Most blocks lie inside an event and cannot end it.
    if (const std::uint64_t closed = count_bits(closes); closed < depth_) {
      depth_ += count_bits(opens) - closed;
      continue;
    }
    for (std::uint64_t rest = opens | closes; rest != 0; rest &= rest - 1) {
      const int bit = std::countr_zero(rest);
      const std::size_t at = base + static_cast<std::size_t>(bit);
      if (opens >> bit & 1) {
        ++depth_;
      } else if (depth_ == 0) {
        if (piece[at] != ']') continue;  // a stray brace between events
        reset();
        found.array_end = at;
        return found;
      } else if (--depth_ == 0) {
        found.after_last = at + 1;
        if (++found.events == most_events) {
          reset();
          return found;
        }
      }
    }
  }
  return found;
}

std::size_t last_event_end(std::string_view text) noexcept {
  const std::string_view end = text.substr(text.size() - std::min(text.size(), kLookBack));
  for (std::size_t brace = end.rfind('{'); brace != std::string_view::npos && brace > 0;
       brace = end.rfind('{', brace - 1)) {
    if (begins_event(end, brace)) return text.size() - end.size() + end.rfind('}', brace) + 1;
  }
  return std::string_view::npos;
}

EventSpan find_event(std::string_view text, std::size_t from) {
  std::size_t begin = from;
  while (begin < text.size() && (is_json_blank(text[begin]) || text[begin] == ',')) ++begin;
  if (begin == text.size()) return {EventSpan::Kind::incomplete, begin, begin};
  if (text[begin] == ']') return {EventSpan::Kind::array_end, begin, begin};

  std::vector<char> open;  // the brackets around this byte, outermost first
  bool in_string = false;
  bool mismatched = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' && at > begin) {
      const bool impossible = in_string || mismatched || (!open.empty() && open.back() == '{');
      if (impossible && begins_event(text, at)) return {EventSpan::Kind::damaged, begin, at};
    }
    if (c == '\\') {
      ++at;  // whatever comes next is no quote
    } else if (c == '"') {
      in_string = !in_string;
      if (!in_string && open.empty()) return {EventSpan::Kind::complete, begin, at + 1};
    } else if (in_string) {
      continue;
    } else if (c == '{' || c == '[') {
      // A bare word ends where an object begins; a comma is missing between them.
      if (open.empty() && at > begin) return {EventSpan::Kind::complete, begin, at};
      open.push_back(c);
    } else if (c == '}' || c == ']') {
      if (open.empty()) return {EventSpan::Kind::complete, begin, at == begin ? at + 1 : at};
      mismatched |= (open.back() == '{') != (c == '}');
      open.pop_back();
      if (open.empty()) return {EventSpan::Kind::complete, begin, at + 1};
    } else if (c == ',' && open.empty()) {
      return {EventSpan::Kind::complete, begin, at};
    }
  }
  return {EventSpan::Kind::incomplete, begin, text.size()};
}

bool repair_texts(char* text, std::size_t length) {
  bool changed = false;
  for (char& c : std::span(text, length)) {
    if (static_cast<unsigned char>(c) >= ' ') continue;
    c = ' ';
    changed = true;
  }
  if (simdjson::validate_utf8(text, length)) return changed;
  for (char& c : std::span(text, length)) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return true;
}

}  // namespace headrace::trace
