#include "headrace/trace/byte_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "headrace/profile/errors.h"

namespace headrace::trace {

FileBytes::FileBytes(std::string path, std::atomic<std::uint64_t>* bytes_read)
    : path_(std::move(path)), bytes_read_(bytes_read) {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0)
    throw FormatError(path_, 0, std::string("a file that can be opened: ") + std::strerror(errno));
  // A hint: the file is read once from front to back. Pipes refuse it, which does not matter.
  posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

FileBytes::~FileBytes() { close(file_); }

std::size_t FileBytes::read(std::span<char> into) {
  for (;;) {
    const ssize_t bytes = ::read(file_, into.data(), into.size());
    if (bytes >= 0) {
      const auto count = static_cast<std::size_t>(bytes);
      if (bytes_read_ != nullptr) bytes_read_->fetch_add(count, std::memory_order_relaxed);
      return count;
    }
    if (errno != EINTR)
      throw FormatError(path_, 0, std::string("a file that can be read: ") + std::strerror(errno));
  }
}

std::size_t MemoryBytes::read(std::span<char> into) {
  const std::size_t bytes = std::min(into.size(), rest_.size());
  std::copy_n(rest_.data(), bytes, into.data());
  rest_.remove_prefix(bytes);
  return bytes;
}

}  // namespace headrace::trace
