// POSIX's calls on files, also where the C library lacks some of them: on Windows.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#ifdef _WIN32

#include <direct.h>
#include <io.h>

#include <cstdlib>
#include <cstring>

// Bytes are read as they are, no child inherits a file, and there are no other kinds of files to beware of.
#define O_CLOEXEC (_O_NOINHERIT | _O_BINARY)
#define O_NOCTTY 0
#define O_NOFOLLOW 0
#define O_NONBLOCK 0
#define S_ISSOCK(mode) false

/// Moves the file's position, which POSIX's does not: one thread reads a file.
inline ssize_t pread(int file, void* to, std::size_t bytes, std::int64_t offset) {
  if (_lseeki64(file, offset, SEEK_SET) < 0) return -1;
  constexpr std::size_t kMaxRead = std::size_t{1} << 30;
  return ::read(file, to, static_cast<unsigned>(bytes < kMaxRead ? bytes : kMaxRead));
}
inline int mkostemp(char* name, int flags) {
  if (_mktemp_s(name, std::strlen(name) + 1) != 0) return -1;
  return ::open(name, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
}
inline char* mkdtemp(char* name) {
  return _mktemp_s(name, std::strlen(name) + 1) == 0 && _mkdir(name) == 0 ? name : nullptr;
}

#endif

namespace headrace::profile {

/// Undoes O_NONBLOCK.
inline void let_reads_wait([[maybe_unused]] int file) {
#ifndef _WIN32
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
#endif
}

/// When a file was changed last, in nanoseconds; where the system keeps seconds only, in whole ones.
inline std::int64_t modified_ns(const struct stat& info) {
#if defined(__APPLE__)
  return info.st_mtimespec.tv_sec * 1'000'000'000 + info.st_mtimespec.tv_nsec;
#elif defined(_WIN32)
  return info.st_mtime * std::int64_t{1'000'000'000};
#else
  return info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
#endif
}

/// A hint: the file is read once from front to back. Pipes refuse it, which does not matter.
inline void read_ahead([[maybe_unused]] int file) {
#ifdef POSIX_FADV_SEQUENTIAL
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

}  // namespace headrace::profile
