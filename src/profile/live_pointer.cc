#include "headrace/profile/live_pointer.h"

#include <cerrno>
#include <cstring>
#include <ios>
#include <sstream>

#include "headrace/profile/process_identity.h"
#include "headrace/profile/regular_file.h"
#include "profile/file_calls.h"

namespace headrace::profile {
namespace {

constexpr std::string_view kSuffix = ".hrseg";
constexpr const char* kMemory = "memory";

}  // namespace

LivePointer LivePointer::to(const SegmentHeader& header, const std::string& path) {
  return {path, header.identity, header.owner_pid, header.owner_start, header.boot};
}

bool LivePointer::owner_is_gone() const noexcept {
  return boot == boot_identity() && !process_alive(owner_pid, owner_start);
}

std::string live_pointer_path(const std::string& copy_path) {
  return copy_path.substr(0, copy_path.size() - kSuffix.size()) + ".live";
}

std::optional<LivePointer> read_live_pointer(const std::string& copy_path) {
  // O_NONBLOCK: opening a FIFO that somebody left here would wait for ever.
  const Descriptor file(
      open(live_pointer_path(copy_path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file.ok() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::istringstream text(read_short(file.get()));
  LivePointer pointer;
  std::getline(text, pointer.path);
  text >> std::hex >> pointer.identity >> std::dec >> pointer.owner_pid >> pointer.owner_start >> std::hex >>
      pointer.boot;
  if (text.fail()) return std::nullopt;
  if (pointer.path == kMemory) pointer.path.clear();
  return pointer;
}

std::string write_live_pointer(const std::string& copy_path, const LivePointer& pointer) {
  std::ostringstream text;
  text << (pointer.path.empty() ? kMemory : pointer.path) << "\n"
       << std::hex << pointer.identity << "\n"
       << std::dec << pointer.owner_pid << " " << pointer.owner_start << " " << std::hex << pointer.boot
       << "\n";
  const std::string bytes = text.str();
  const std::string path = live_pointer_path(copy_path);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  const ssize_t wrote = fd < 0 ? -1 : write(fd, bytes.data(), bytes.size());
  int error = wrote < 0 ? errno : wrote == static_cast<ssize_t>(bytes.size()) ? 0 : ENOSPC;
  if (fd >= 0 && close(fd) != 0 && error == 0) error = errno;
  if (error == 0) return "";
  unlink(path.c_str());
  return path + ": " + std::strerror(error);
}

void remove_live_pointer(const std::string& copy_path) noexcept {
  unlink(live_pointer_path(copy_path).c_str());
}

}  // namespace headrace::profile
