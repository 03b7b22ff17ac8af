#include "printable.h"

#include <algorithm>
#include <cstdint>

namespace headrace::report {
namespace {

constexpr char32_t kBroken = 0xFFFD;

struct Range {
  char32_t first;
  char32_t last;
};

/// Characters that move the cursor or turn the direction of what follows.
constexpr Range kHarmful[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0x061C, 0x061C}, {0x200B, 0x200F},
                              {0x2028, 0x202E}, {0x2060, 0x206F},  {0xD800, 0xDFFF}, {0xFEFF, 0xFEFF},
                              {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}};
/// Marks that sit on the character before them (Unicode 15, the blocks that consist of such marks).
constexpr Range kZeroWide[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
                               {0x064B, 0x065F}, {0x0900, 0x0902}, {0x093C, 0x093C}, {0x0941, 0x0948},
                               {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},
                               {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
/// Wide and full-width (Unicode 15, East Asian Width W and F, rounded up to blocks).
constexpr Range kTwoWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},
    {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},
    {0x26F2, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274E},
    {0x2753, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B55},
    {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF},
    {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F19A}, {0x1F1E6, 0x1F320},
    {0x1F32D, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7F0}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};

template <std::size_t N>
bool in(const Range (&ranges)[N], char32_t point) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [point](const Range& range) { return point >= range.first && point <= range.last; });
}

/// The character at `at`, which moves behind it. What is no UTF-8 takes one byte.
char32_t next_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 && lead < 0xF5   ? 3
                   : lead >= 0xE0 && lead < 0xF0 ? 2
                   : lead >= 0xC2 && lead < 0xE0 ? 1
                                                 : 0;
  if (more == 0 || at + static_cast<std::size_t>(more) > text.size()) return kBroken;
  char32_t point = lead & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    const std::uint8_t follow = byte(at + static_cast<std::size_t>(i));
    if ((follow & 0xC0) != 0x80) return kBroken;
    point = point << 6 | (follow & 0x3F);
  }
  constexpr char32_t kMin[] = {0, 0x80, 0x800, 0x10000};
  if (point < kMin[more] || point > 0x10FFFF) return kBroken;
  at += static_cast<std::size_t>(more);
  return point;
}

/// A unit stays on the line of its number.
bool is_unit(std::string_view rest) {
  const std::string_view word = rest.substr(0, rest.find_first_of(" ,.;:)"));
  return word == "%" || word == "ms" || word == "us" || word == "s";
}

std::size_t width_of(char32_t point) { return in(kZeroWide, point) ? 0 : in(kTwoWide, point) ? 2 : 1; }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t point = next_point(text, at);
    if (point == kBroken) {
      out += "\xEF\xBF\xBD";
    } else if (!in(kHarmful, point)) {
      out.append(text.substr(begin, at - begin));
    } else if (point == '\n' || point == '\t' || point == '\r') {
      out += ' ';
    }
  }
  return out;
}

std::size_t columns(std::string_view text) {
  std::size_t sum = 0;
  for (std::size_t at = 0; at < text.size();) sum += width_of(next_point(text, at));
  return sum;
}

std::string shortened(std::string_view text, std::size_t most) {
  // Far more bytes than columns can only be marks piled on one character.
  std::string clean = printable(text.substr(0, 16 * most + 64));
  if (columns(clean) <= most && text.size() <= 16 * most + 64) return clean;
  if (most == 0) return "";
  std::size_t used = 0;
  std::size_t at = 0;
  while (at < clean.size()) {
    std::size_t next = at;
    const std::size_t width = width_of(next_point(clean, next));
    if (used + width > most - 1) break;
    used += width;
    at = next;
  }
  return clean.substr(0, at) + "…";
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
  const std::size_t used = columns(text);
  const std::string blanks(used < width ? width - used : 0, ' ');
  return to_the_right ? blanks + text : text + blanks;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  const std::string clean = printable(text);
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t begin = clean.find_first_not_of(' ', at);
    if (begin == std::string::npos) break;
    std::size_t end = std::min(clean.find(' ', begin), clean.size());
    if (is_unit(std::string_view(clean).substr(std::min(end + 1, clean.size())))) {
      end = std::min(clean.find(' ', end + 1), clean.size());
    }
    const std::string word = shortened(std::string_view(clean).substr(begin, end - begin), width);
    at = end;
    if (!line.empty() && columns(line) + 1 + columns(word) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace headrace::report
