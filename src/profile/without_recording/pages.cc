#include "profile/pages.h"

#include <cstdlib>
#include <new>

namespace headrace::profile {

// So large a block comes from the system, zero already, and takes no room until it is touched.
ZeroPages::ZeroPages(std::size_t bytes) : data_(std::calloc(1, bytes)), bytes_(bytes) {
  if (data_ == nullptr) throw std::bad_alloc();
}
ZeroPages::~ZeroPages() { std::free(data_); }
void ZeroPages::expect(std::size_t) const noexcept {}

std::size_t block_bytes(std::size_t wanted) noexcept { return wanted; }
void* grow_block(void* data, std::size_t, std::size_t wanted) noexcept { return std::realloc(data, wanted); }
void free_block(void* data, std::size_t) noexcept { std::free(data); }

}  // namespace headrace::profile
