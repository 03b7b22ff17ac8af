#include "headrace/profile/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace headrace::profile {

void store_words(void* to, const void* from, std::size_t bytes) noexcept {
  auto* target = static_cast<std::uint64_t*>(to);
  for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(from) + i * sizeof(word), sizeof(word));
    __atomic_store_n(target + i, word, __ATOMIC_RELAXED);
  }
}

std::string_view cut_at_character(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  // Continuation bytes are 10xxxxxx.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

void Name::assign(std::string_view text) noexcept {
  alignas(8) std::array<char, kNameBytes> whole{};
  const std::string_view kept = cut_at_character(text, whole.size() - 1);
  std::copy(kept.begin(), kept.end(), whole.begin());
  store_words(bytes.data(), whole.data(), whole.size());
}

std::uint64_t hash_of(std::string_view bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return hash;
}

std::uint64_t header_checksum(const SegmentHeader& header) noexcept {
  return hash_of({reinterpret_cast<const char*>(&header), offsetof(SegmentHeader, checksum)});
}

}  // namespace headrace::profile
