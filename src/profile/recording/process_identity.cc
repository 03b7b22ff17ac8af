#include "headrace/profile/process_identity.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "headrace/profile/layout.h"
#include "host_kernel_file.h"

namespace headrace::profile {

constinit std::atomic<int> cached_pid{0};

namespace {

struct ForkHandler {
  ForkHandler() {
    cached_pid.store(getpid(), std::memory_order_relaxed);
    pthread_atfork(nullptr, nullptr, [] { cached_pid.store(getpid(), std::memory_order_relaxed); });
  }
};
const ForkHandler fork_handler;

}  // namespace

std::uint64_t process_start(int pid) noexcept {
  const auto stat = read_process_stat(pid);
  return stat ? stat->start : 0;
}

bool process_alive(int pid, std::uint64_t start) noexcept {
  const auto stat = read_process_stat(pid);
  return stat && stat->start != 0 && stat->start == start && stat->state != 'Z' && stat->state != 'X';
}

std::uint64_t boot_identity() noexcept {
  std::array<char, 1024> buffer;
  const std::string_view text = KernelFile::read_once("/proc/sys/kernel/random/boot_id", buffer);
  return text.empty() ? 0 : hash_of(text);
}

std::uint64_t pid_namespace() noexcept {
  struct stat info{};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

int current_tid() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace headrace::profile
