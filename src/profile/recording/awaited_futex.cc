#include "headrace/profile/awaited_futex.h"

#include <sys/syscall.h>

#include <array>
#include <cstdio>

#include "headrace/profile/host/kernel_text.h"
#include "host_kernel_file.h"

namespace headrace::profile {

AwaitedFutex::AwaitedFutex() = default;
AwaitedFutex::~AwaitedFutex() = default;
AwaitedFutex::AwaitedFutex(AwaitedFutex&&) noexcept = default;
AwaitedFutex& AwaitedFutex::operator=(AwaitedFutex&&) noexcept = default;

AwaitedFutex::AwaitedFutex(int tid) : file_(std::make_unique<KernelFile>()) {
  std::array<char, 48> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/syscall", tid);
  file_->open(path.data());
}

ThreadLook AwaitedFutex::look() noexcept {
  if (!file_) return {};
  std::array<char, 256> text;
  return parse_syscall(file_->read(text));
}

ThreadLook parse_syscall(std::string_view text) noexcept {
  ThreadLook look;
  if (text.starts_with("running")) {
    look.known = look.runs = true;
    return look;
  }
  const std::optional<SystemCall> call = parse_system_call(text);
  look.known = call.has_value();
  if (call && call->number == SYS_futex) look.futex = call->argument.value_or(0);
  return look;
}

}  // namespace headrace::profile
