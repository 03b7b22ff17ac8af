#include "headrace/trace/values.h"

#include <algorithm>
#include <limits>
#include <new>

#include "profile/pages.h"

namespace headrace::trace {

GrowingMemory::~GrowingMemory() { profile::free_block(data_, bytes_); }

void GrowingMemory::grow(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) throw std::bad_alloc();
  const std::size_t wanted = profile::block_bytes(std::max({bytes, 2 * bytes_, std::size_t{64}}));
  void* const data = profile::grow_block(data_, bytes_, wanted);
  if (data == nullptr) throw std::bad_alloc();
  data_ = data;
  bytes_ = wanted;
}

}  // namespace headrace::trace
