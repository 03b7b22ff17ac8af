#include "headrace/timeline/json_text.h"

#include <algorithm>
#include <cstddef>

namespace headrace::timeline {
namespace {

/// Length of the UTF-8 character at `text[at]`, 0 where there is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  if (length == 3 && ((first == 0xE0 && byte(at + 1) < 0xA0) || (first == 0xED && byte(at + 1) >= 0xA0)))
    return 0;
  if (length == 4 && ((first == 0xF0 && byte(at + 1) < 0x90) || (first == 0xF4 && byte(at + 1) >= 0x90)))
    return 0;
  return length;
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const char c = text[at];
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      json += "\\u00";
      json += {kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 0xF]};
    } else {
      json += text.substr(at, length);
    }
    at += std::max<std::size_t>(1, length);
  }
  return json += '"';
}

}  // namespace headrace::timeline
