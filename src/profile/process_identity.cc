#include "headrace/profile/process_identity.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace headrace::profile {
namespace {

/// Reads a small file whole; returns its length, 0 when it cannot be read.
std::size_t read_small(const char* path, std::array<char, 1024>& buffer) noexcept {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size() - 1);
  close(fd);
  if (got <= 0) return 0;
  buffer[static_cast<std::size_t>(got)] = '\0';
  return static_cast<std::size_t>(got);
}

struct IdentityStat {
  char state = '?';
  std::uint64_t start = 0;
};

IdentityStat read_identity_stat(int pid) noexcept {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  std::array<char, 1024> text{};
  IdentityStat stat;
  if (read_small(path.data(), text) == 0) return stat;
  // The command's name, field 2, may hold anything: the fields go on after its last ')'.
  const char* cursor = std::strrchr(text.data(), ')');
  if (cursor == nullptr || cursor[1] == '\0') return stat;
  stat.state = cursor[2];
  cursor += 2;
  for (int field = 3; field < 22; ++field) {
    cursor = std::strchr(cursor, ' ');
    if (cursor == nullptr) return stat;
    ++cursor;
  }
  stat.start = std::strtoull(cursor, nullptr, 10);
  return stat;
}

std::atomic<int> cached_pid{0};

struct ForkHandler {
  ForkHandler() {
    cached_pid.store(getpid(), std::memory_order_relaxed);
    pthread_atfork(nullptr, nullptr, [] { cached_pid.store(getpid(), std::memory_order_relaxed); });
  }
};
const ForkHandler fork_handler;

}  // namespace

std::uint64_t process_start(int pid) noexcept { return read_identity_stat(pid).start; }

bool process_alive(int pid, std::uint64_t start) noexcept {
  const IdentityStat stat = read_identity_stat(pid);
  return stat.start != 0 && stat.start == start && stat.state != 'Z' && stat.state != 'X';
}

std::uint64_t boot_identity() noexcept {
  std::array<char, 1024> text{};
  const std::size_t length = read_small("/proc/sys/kernel/random/boot_id", text);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : std::string_view(text.data(), length)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return length == 0 ? 0 : hash;
}

std::uint64_t pid_namespace() noexcept {
  struct stat info{};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

int current_pid() noexcept {
  const int pid = cached_pid.load(std::memory_order_relaxed);
  return pid != 0 ? pid : getpid();
}

int current_tid() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace headrace::profile
