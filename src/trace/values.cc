#include "headrace/trace/values.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace headrace::trace {
namespace {

/// From here on pages of its own: what glibc takes for large too.
constexpr std::size_t kPages = std::size_t{256} << 10;
/// From here on huge pages where there are any: a fault costs as much as clearing a page, and what the last
/// one wastes is little beside the whole.
constexpr std::size_t kHugePages = std::size_t{32} << 20;

bool is_mapped(std::size_t bytes) noexcept { return bytes >= kPages; }

/// Longer or new pages. Null if there are none.
void* map_pages(void* data, std::size_t bytes, std::size_t wanted) noexcept {
  void* const pages = is_mapped(bytes)
                          ? mremap(data, bytes, wanted, MREMAP_MAYMOVE)
                          : mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  if (wanted >= kHugePages) madvise(pages, wanted, MADV_HUGEPAGE);  // only a hint
  return pages;
}

}  // namespace

GrowingMemory::~GrowingMemory() {
  if (is_mapped(bytes_)) {
    munmap(data_, bytes_);
  } else {
    std::free(data_);
  }
}

void GrowingMemory::grow(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) throw std::bad_alloc();
  std::size_t wanted = std::max({bytes, 2 * bytes_, std::size_t{64}});
  if (!is_mapped(wanted)) {
    void* const data = std::realloc(data_, wanted);
    if (data == nullptr) throw std::bad_alloc();
    data_ = data;
    bytes_ = wanted;
    return;
  }
  // Whole huge pages, which are whole pages of every size.
  constexpr std::size_t kWhole = std::size_t{64} << 10;
  wanted = (wanted + kWhole - 1) / kWhole * kWhole;
  void* const pages = map_pages(data_, bytes_, wanted);
  if (pages == nullptr) throw std::bad_alloc();
  if (!is_mapped(bytes_)) {
    std::copy_n(static_cast<const char*>(data_), bytes_, static_cast<char*>(pages));
    std::free(data_);
  }
  data_ = pages;
  bytes_ = wanted;
}

}  // namespace headrace::trace
