// Memory behind a mapped file, page by page.
#pragma once

#include <cstddef>

namespace headrace::metrics {

/// Allocates the pages of `bytes` bytes at `from`, so that a later store cannot fail. Returns false if the
/// file system is full; a store into an unallocated page would then raise SIGBUS.
///
/// Thread-safe, also between processes; about a microsecond where the pages are there already. Needs Linux
/// 5.14; older kernels return true, because `Segment::create` allocates the whole file there.
bool back_pages(void* from, std::size_t bytes) noexcept;

/// True if the kernel can give single pages their memory.
bool can_back_pages() noexcept;

}  // namespace headrace::metrics
