#include "headrace/profile/regular_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "headrace/profile/errors.h"
#include "profile/file_calls.h"

namespace headrace::profile {
namespace {

bool is_given_descriptor(std::string_view path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

RegularFile::RegularFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: a pipe's open waits for a writer. O_NOCTTY: a terminal's open may become ours.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info{};
  if (descriptor_ < 0 || fstat(descriptor_, &info) != 0) {
    const int error = errno;
    if (descriptor_ >= 0) close(descriptor_);
    if (error == ENXIO) throw FormatError(path, "a socket or a device, not a regular file");
    throw FormatError(path, error == ENOENT ? "no such file" : std::strerror(error));
  }
  if (is_given_descriptor(path)) {
    let_reads_wait(descriptor_);
  } else if (!S_ISREG(info.st_mode)) {
    close(descriptor_);
    throw FormatError(path, std::string(kind_of(info.st_mode)) + ", not a regular file");
  }
  if (S_ISREG(info.st_mode)) bytes_ = static_cast<std::uint64_t>(info.st_size);
}

RegularFile::~RegularFile() { close(descriptor_); }

std::string RegularFile::read_all(std::uint64_t most) const {
  const auto check = [&](std::uint64_t bytes) {
    if (bytes > most) throw FormatError(path_, 0, "a file of at most " + std::to_string(most >> 20) + " MiB");
  };
  check(bytes_);
  std::string text;
  text.reserve(bytes_);
  char block[1 << 16];
  for (;;) {
    const ssize_t bytes = ::read(descriptor_, block, sizeof block);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) throw FormatError(path_, std::strerror(errno));
    if (bytes == 0) return text;
    text.append(block, static_cast<std::size_t>(bytes));
    check(text.size());  // it grows
  }
}

std::string read_regular_file(const std::string& path, std::uint64_t most) {
  return RegularFile(path).read_all(most);
}

std::string read_short(int fd) {
  std::array<char, 8192> text{};
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(fd, text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  return {text.data(), length};
}

}  // namespace headrace::profile
