// One small file of /proc or /sys, read again and again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/profile/host/kernel_text.h"

namespace headrace::profile {

/// Keeps the descriptor open between reads (1 to 4 us instead of 7 to 13). A descriptor of /proc/<pid>/...
/// belongs to that very process: when it is gone reading fails, whoever has the number then.
class KernelFile {
 public:
  KernelFile() = default;
  ~KernelFile() { close(); }
  KernelFile(KernelFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  KernelFile& operator=(KernelFile&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  bool is_open() const noexcept { return fd_ >= 0; }
  bool open(const char* path) noexcept;
  void close() noexcept;

  /// The text from its beginning, as one read gives it; empty on failure, and the file is closed then.
  std::string_view read(std::span<char> buffer) noexcept;

  /// Opens, reads and closes.
  static std::string_view read_once(const char* path, std::span<char> buffer) noexcept;
  /// A file of any length up to 1 MiB. May throw std::bad_alloc.
  static std::string read_whole(const char* path);

 private:
  int fd_ = -1;
};

/// `/proc/<pid>/stat`; nothing if there is no such process.
std::optional<ProcessStat> read_process_stat(int pid) noexcept;

}  // namespace headrace::profile
