#include "headrace/profile/awaited_futex.h"

#include <sys/syscall.h>

#include <array>
#include <charconv>
#include <cstdio>

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
  const char* const end = text.data() + text.size();
  long number = -1;
  const auto [after, error] = std::from_chars(text.data(), end, number);
  look.known = error == std::errc();
  constexpr std::string_view kAddress = " 0x";
  const std::string_view rest(after, static_cast<std::size_t>(end - after));
  if (!look.known || number != SYS_futex || !rest.starts_with(kAddress)) return look;
  const auto first = std::from_chars(after + kAddress.size(), end, look.futex, 16);
  if (first.ec != std::errc()) look.futex = 0;
  return look;
}

}  // namespace headrace::profile
