// Gzip without a compressor: the text in stored blocks, with a true checksum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::trace {

inline void append_little_endian(std::string& to, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

inline std::uint32_t crc32_of(std::string_view text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/// One member.
inline std::string stored_gzip(std::string_view text) {
  std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  for (std::size_t at = 0; at == 0 || at < text.size(); at += 0xffff) {
    const std::string_view block = text.substr(at, 0xffff);
    gzip.push_back(at + block.size() == text.size() ? 1 : 0);
    append_little_endian(gzip, static_cast<std::uint32_t>(block.size()), 2);
    append_little_endian(gzip, ~static_cast<std::uint32_t>(block.size()), 2);
    gzip.append(block);
  }
  append_little_endian(gzip, crc32_of(text), 4);
  append_little_endian(gzip, static_cast<std::uint32_t>(text.size()), 4);
  return gzip;
}

}  // namespace headrace::trace
