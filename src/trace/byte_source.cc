#include "headrace/trace/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "headrace/profile/errors.h"
#include "profile/file_calls.h"

namespace headrace::trace {

FileBytes::FileBytes(std::string path, std::atomic<std::uint64_t>* bytes_read)
    : path_(std::move(path)), file_(path_), bytes_read_(bytes_read) {
  profile::read_ahead(file_.descriptor());
}

std::size_t FileBytes::read(std::span<char> into) {
  for (;;) {
    const ssize_t bytes = ::read(file_.descriptor(), into.data(), into.size());
    if (bytes >= 0) {
      const auto count = static_cast<std::size_t>(bytes);
      if (bytes_read_ != nullptr) bytes_read_->fetch_add(count, std::memory_order_relaxed);
      return count;
    }
    if (errno != EINTR) throw FormatError(path_, std::strerror(errno));
  }
}

std::size_t MemoryBytes::read(std::span<char> into) {
  const std::size_t bytes = std::min(into.size(), rest_.size());
  std::copy_n(rest_.data(), bytes, into.data());
  rest_.remove_prefix(bytes);
  return bytes;
}

PeekedBytes::PeekedBytes(ByteSource& source, std::size_t bytes) : source_(source), first_(bytes, '\0') {
  std::size_t size = 0;
  for (std::size_t more = 1; more > 0 && size < bytes; size += more)
    more = source.read(std::span(first_).subspan(size));
  first_.resize(size);
}

std::size_t PeekedBytes::read(std::span<char> into) {
  if (given_ == first_.size()) return source_.read(into);
  const std::size_t count = std::min(into.size(), first_.size() - given_);
  std::copy_n(first_.data() + given_, count, into.data());
  given_ += count;
  return count;
}

}  // namespace headrace::trace
