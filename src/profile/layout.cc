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

void Name::assign(std::string_view text) noexcept {
  std::size_t length = std::min(text.size(), bytes.size() - 1);
  // Never cut inside a UTF-8 character: continuation bytes are 10xxxxxx.
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  }
  alignas(8) std::array<char, kNameBytes> whole{};
  if (length > 0) std::memcpy(whole.data(), text.data(), length);
  store_words(bytes.data(), whole.data(), whole.size());
}

std::string_view Name::view() const noexcept {
  const auto end = std::find(bytes.begin(), bytes.end(), '\0');
  return {bytes.data(), static_cast<std::size_t>(end - bytes.begin())};
}

Layout Layout::current() noexcept {
  struct Shape {
    std::size_t stride;
    std::uint32_t count;
  };
  const std::array<Shape, kSections> shapes = {{
      {sizeof(LoaderRecord), kMaxLoaders},
      {sizeof(OperatorRecord), kMaxOperators},
      {sizeof(QueueRecord), kMaxQueues},
      {sizeof(metrics::WorkerCell), kMaxWorkers},
      {sizeof(metrics::DeliveryRing), kMaxWorkers},
      {sizeof(metrics::OperatorCell), kMaxCells},
      {sizeof(std::int64_t), kMaxBins},
      {sizeof(metrics::HostCell), 1},
      {sizeof(metrics::HistoryTrack), kMaxTracks},
      {sizeof(metrics::HistoryWord), kHistoryWords},
      {sizeof(AnnotationName), kMaxAnnotations},
  }};
  constexpr std::uint64_t kPage = 4096;
  const auto round_up = [](std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
  Layout layout{};
  std::uint64_t offset = round_up(sizeof(SegmentHeader));
  for (std::size_t i = 0; i < kSections; ++i) {
    layout.sections[i] = {offset, static_cast<std::uint32_t>(shapes[i].stride), shapes[i].count};
    offset = round_up(offset + shapes[i].stride * shapes[i].count);
  }
  layout.total_bytes = offset;
  return layout;
}

std::uint64_t header_checksum(const SegmentHeader& header) noexcept {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (std::size_t i = 0; i < offsetof(SegmentHeader, checksum); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace headrace::profile
