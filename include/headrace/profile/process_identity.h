// Identity of a process: a pid alone is recycled.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace headrace::profile {

/// Start time of a process (field 22 of `/proc/<pid>/stat`, clock ticks since boot); 0 if there is none.
std::uint64_t process_start(int pid) noexcept;

/// True while the very process that recorded `start` runs (not a later one that got its pid; not a zombie).
bool process_alive(int pid, std::uint64_t start) noexcept;

/// Hash of /proc/sys/kernel/random/boot_id: equal on one machine until it reboots. 0 where unknown.
std::uint64_t boot_identity() noexcept;

/// Number of the namespace in which this process's pids count; 0 if unknown.
std::uint64_t pid_namespace() noexcept;

extern std::atomic<int> cached_pid;  ///< 0 until the library is loaded

/// This process and thread; the pid is cached and right after fork too.
inline int current_pid() noexcept {
  const int pid = cached_pid.load(std::memory_order_relaxed);
  return pid != 0 ? pid : getpid();
}
int current_tid() noexcept;

}  // namespace headrace::profile
