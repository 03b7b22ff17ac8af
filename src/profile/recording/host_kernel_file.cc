#include "host_kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace headrace::profile {

bool KernelFile::open(const char* path) noexcept {
  close();
  fd_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  return fd_ >= 0;
}

void KernelFile::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string_view KernelFile::read(std::span<char> buffer) noexcept {
  if (fd_ < 0) return {};
  ssize_t got = -1;
  do {
    got = pread(fd_, buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    close();
    return {};
  }
  return {buffer.data(), static_cast<std::size_t>(got)};
}

std::string_view KernelFile::read_once(const char* path, std::span<char> buffer) noexcept {
  KernelFile file;
  return file.open(path) ? file.read(buffer) : std::string_view();
}

std::string KernelFile::read_whole(const char* path) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  KernelFile file;
  std::string text;
  if (!file.open(path)) return text;
  std::array<char, 4096> part;
  while (text.size() < kMaxBytes) {
    const ssize_t got = ::read(file.fd_, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::optional<ProcessStat> read_process_stat(int pid) noexcept {
  std::array<char, 64> path{};
  std::array<char, 1024> text;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  return parse_process_stat(KernelFile::read_once(path.data(), text), tick_ns());
}

}  // namespace headrace::profile
