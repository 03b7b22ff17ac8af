// Opened files, and queries of them beside their bytes.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

namespace headrace::profile {

/// An open file; closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }
  bool ok() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

/// Undoes O_NONBLOCK.
inline void let_reads_wait(int file) { fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK); }

/// When a file was changed last, in nanoseconds.
inline std::int64_t modified_ns(const struct stat& info) {
  return info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
}

/// A hint: the file is read once from front to back. Pipes refuse it, which does not matter.
inline void read_ahead(int file) { posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL); }

}  // namespace headrace::profile
