#include "headrace/metrics/page_backing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace headrace::metrics {
namespace {

/// MADV_POPULATE_WRITE, which older headers lack.
constexpr int kPopulateWrite = 23;

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool populate(void* page, std::size_t bytes) noexcept {
  for (;;) {
    if (madvise(page, bytes, kPopulateWrite) == 0) return true;
    if (errno != EINTR && errno != EAGAIN) return false;
  }
}

}  // namespace

bool can_back_pages() noexcept {
  static const bool can = [] {
    void* page = mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    const bool populated = populate(page, page_bytes());
    munmap(page, page_bytes());
    return populated;
  }();
  return can;
}

bool back_pages(void* from, std::size_t bytes) noexcept {
  if (!can_back_pages()) return true;
  const std::size_t before = reinterpret_cast<std::uintptr_t>(from) % page_bytes();
  return populate(static_cast<std::byte*>(from) - before, before + bytes);
}

}  // namespace headrace::metrics
