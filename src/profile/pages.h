// Large blocks of memory whose pages grow without a copy.
#pragma once

#include <cstddef>

namespace headrace::profile {

/// Zero until it is written, and only what is touched takes memory. Throws std::bad_alloc. Not thread-safe.
class ZeroPages {
 public:
  explicit ZeroPages(std::size_t bytes);
  ~ZeroPages();
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;

  void* data() const noexcept { return data_; }
  /// Before the first touch: how many bytes will be written. A hint.
  void expect(std::size_t bytes) const noexcept;

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  void* mapped_ = nullptr;
};

/// Bytes that a block of at least `wanted` bytes should have.
std::size_t block_bytes(std::size_t wanted) noexcept;
/// A block of `wanted` bytes with the content of `data`, a block of `bytes` bytes or null, which it replaces.
/// Null if there is no memory: then `data` stays.
void* grow_block(void* data, std::size_t bytes, std::size_t wanted) noexcept;
void free_block(void* data, std::size_t bytes) noexcept;

}  // namespace headrace::profile
