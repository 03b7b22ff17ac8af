// Where the bytes of a trace come from: a file, memory, or whatever a caller can read from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headrace/profile/regular_file.h"

namespace headrace::trace {

/// A stream of bytes that is read once, from its beginning. Used by one thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Puts the next bytes into `into` and returns how many; 0 means the end (or an empty `into`). May return
  /// fewer than fit. Throws FormatError when the bytes cannot be had.
  virtual std::size_t read(std::span<char> into) = 0;
};

/// A file on disk. Throws FormatError when it is no regular file, or cannot be opened or read.
class FileBytes : public ByteSource {
 public:
  /// `bytes_read`: incremented by the bytes read, to show progress; may be null.
  explicit FileBytes(std::string path, std::atomic<std::uint64_t>* bytes_read = nullptr);

  std::size_t read(std::span<char> into) override;

 private:
  std::string path_;
  profile::RegularFile file_;
  std::atomic<std::uint64_t>* bytes_read_;
};

/// Bytes that are in memory already; `bytes` must outlive this.
class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : rest_(bytes) {}

  std::size_t read(std::span<char> into) override;

 private:
  std::string_view rest_;
};

/// The first bytes of a source, which can be looked at, then all of the source. Refers to it.
class PeekedBytes : public ByteSource {
 public:
  PeekedBytes(ByteSource& source, std::size_t bytes);

  std::string_view first() const noexcept { return first_; }
  std::size_t read(std::span<char> into) override;

 private:
  ByteSource& source_;
  std::string first_;
  std::size_t given_ = 0;
};

}  // namespace headrace::trace
