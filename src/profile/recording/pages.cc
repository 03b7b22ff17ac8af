#include "profile/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace headrace::profile {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Blocks have pages of their own from here on: what glibc takes for large too.
constexpr std::size_t kMinMapped = std::size_t{256} << 10;
/// From here on huge pages where there are any: a fault costs as much as clearing a page, and what the last
/// one wastes is little beside the whole.
constexpr std::size_t kMinHuge = std::size_t{32} << 20;

bool is_mapped(std::size_t bytes) noexcept { return bytes >= kMinMapped; }

/// Null if there are none.
void* new_pages(std::size_t bytes) noexcept {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

}  // namespace

ZeroPages::ZeroPages(std::size_t bytes) : bytes_(bytes), mapped_(new_pages(bytes + kHugePage)) {
  if (mapped_ == nullptr) throw std::bad_alloc();
  data_ = mapped_;
  std::size_t room = bytes + kHugePage;
  std::align(kHugePage, bytes, data_, room);
}

ZeroPages::~ZeroPages() { munmap(mapped_, bytes_ + kHugePage); }

// 3.5 MB through page faults of 4 KiB take 2.2 ms, through huge pages 0.3 ms; a small run is better off with
// small pages.
void ZeroPages::expect(std::size_t bytes) const noexcept {
  if (bytes > kHugePage / 2) madvise(data_, (bytes_ + kHugePage - 1) / kHugePage * kHugePage, MADV_HUGEPAGE);
}

std::size_t block_bytes(std::size_t wanted) noexcept {
  // Whole huge pages, which are whole pages of every size.
  constexpr std::size_t kWhole = std::size_t{64} << 10;
  return is_mapped(wanted) ? (wanted + kWhole - 1) / kWhole * kWhole : wanted;
}

void* grow_block(void* data, std::size_t bytes, std::size_t wanted) noexcept {
  if (!is_mapped(wanted)) return std::realloc(data, wanted);
  void* pages = is_mapped(bytes) ? mremap(data, bytes, wanted, MREMAP_MAYMOVE) : new_pages(wanted);
  if (pages == nullptr || pages == MAP_FAILED) return nullptr;
  if (wanted >= kMinHuge) madvise(pages, wanted, MADV_HUGEPAGE);  // only a hint
  if (!is_mapped(bytes)) {
    std::copy_n(static_cast<const char*>(data), bytes, static_cast<char*>(pages));
    std::free(data);
  }
  return pages;
}

void free_block(void* data, std::size_t bytes) noexcept {
  if (is_mapped(bytes)) {
    munmap(data, bytes);
  } else {
    std::free(data);
  }
}

}  // namespace headrace::profile
