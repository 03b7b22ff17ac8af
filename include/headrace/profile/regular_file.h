// How everything that lies in a folder is opened: without waiting, and regular files only.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::profile {

/// A regular file, open for reading.
///
///     const RegularFile file(path);
///     const std::string text = file.read_all(kMaxBytes);
///
/// A named pipe would block until somebody writes into it, and a device may never end: both are refused, as are
/// sockets and folders. The check is made on the open descriptor, so the file cannot be replaced in between.
class RegularFile {
 public:
  /// FormatError, with the system's reason, for what cannot be opened or is no regular file. A descriptor that
  /// the caller was given (/dev/stdin, /dev/fd/63 for `<(zcat trace)`) may be anything.
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  /// Its size when it was opened; 0 for a descriptor without one.
  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Its content. FormatError for a file of more than `most` bytes, before anything is read, and for a read
  /// that fails.
  std::string read_all(std::uint64_t most) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

/// `RegularFile::read_all` in one call.
std::string read_regular_file(const std::string& path, std::uint64_t most);

/// Up to 8 KiB of an open file.
std::string read_short(int fd);

}  // namespace headrace::profile
