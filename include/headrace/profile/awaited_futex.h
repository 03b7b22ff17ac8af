// Futex that a thread of this process waits on now, read from /proc/self/task/<tid>/syscall.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace headrace::profile {

class KernelFile;

/// A sample of a thread's state.
struct ThreadLook {
  bool known = false;        ///< false: the thread has ended, or the kernel does not tell
  bool runs = false;         ///< on a core, or ready to run
  std::uintptr_t futex = 0;  ///< address of the futex it waits on; 0: it runs, is ready to run, or waits for
                             ///< something else
};

/// Keeps the file open between looks, 2 to 4 us each. A look neither stops nor wakes the thread. Not
/// thread-safe.
class AwaitedFutex {
 public:
  AwaitedFutex();
  explicit AwaitedFutex(int tid);  ///< a thread of this process
  ~AwaitedFutex();
  AwaitedFutex(AwaitedFutex&&) noexcept;
  AwaitedFutex& operator=(AwaitedFutex&&) noexcept;

  ThreadLook look() noexcept;

 private:
  std::unique_ptr<KernelFile> file_;
};

/// The text of that file: "running", or the system call's number, its arguments, stack and program counter.
/// Source: proc_pid_syscall(5).
ThreadLook parse_syscall(std::string_view text) noexcept;

}  // namespace headrace::profile
