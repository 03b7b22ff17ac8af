// Pieces of a line of JSON, written one behind the other into memory that is large enough.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headrace::timeline {

/// Room that `put_microseconds` needs.
inline constexpr std::size_t kTimeRoom = 32;

inline char* put_text(char* at, std::string_view text) noexcept {
  // An empty view may have no address, which memcpy must not be given.
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

/// Nanoseconds as microseconds with three decimals; the sign is that of the whole.
inline char* put_microseconds(char* at, std::int64_t ns) noexcept {
  auto size = static_cast<std::uint64_t>(ns);
  if (ns < 0) {
    *at++ = '-';
    size = 0 - size;
  }
  at = std::to_chars(at, at + kTimeRoom, size / 1000).ptr;
  const auto thousandths = static_cast<unsigned>(size % 1000);
  const std::array<char, 4> decimals = {'.', static_cast<char>('0' + thousandths / 100),
                                        static_cast<char>('0' + thousandths / 10 % 10),
                                        static_cast<char>('0' + thousandths % 10)};
  return put_text(at, {decimals.data(), decimals.size()});
}

}  // namespace headrace::timeline
