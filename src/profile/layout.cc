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
      {sizeof(metrics::RemoteCell), kMaxRemotes},
      {sizeof(metrics::HistoryTrack), kMaxTracks},
      {sizeof(metrics::HistoryWord), kHistoryWords},
      {sizeof(AnnotationName), kMaxAnnotations},
      {sizeof(metrics::RemoteTraffic), 1},
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
