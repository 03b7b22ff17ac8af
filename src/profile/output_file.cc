#include "headrace/profile/output_file.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "headrace/profile/errors.h"
#include "profile/file_calls.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

/// Target of a write to `path`: symbolic links are followed, also one whose target does not exist yet.
std::string behind_links(const std::string& path) {
  constexpr int kMaxLinks = 40;
  fs::path now = path;
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(now, error)); ++i) {
    const fs::path next = fs::read_symlink(now, error);
    if (error) break;
    now = next.is_absolute() ? next : now.parent_path() / next;
  }
  return now.string();
}

/// 0, or why not everything was written.
int write_all(int file, const char* bytes, std::size_t count) noexcept {
  while (count > 0) {
    const ssize_t wrote = ::write(file, bytes, count);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes += wrote;
    count -= static_cast<std::size_t>(wrote);
  }
  return 0;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  struct stat info{};
  if (stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) fail(EISDIR);
    open_temporary();
  } else {
    target_ = behind_links(path_);
    open_beside();
  }
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  close(file_);
  if (!beside_.empty()) unlink(beside_.c_str());
}

void OutputFile::fail(int error) const { throw Error(path_ + ": " + std::strerror(error)); }

// An unpredictable name: in a folder that others may write to, they could have put a file there.
void OutputFile::open_beside() {
  beside_ = target_ + ".XXXXXX";
  file_ = mkostemp(beside_.data(), O_CLOEXEC);
  if (file_ < 0) fail(errno);
}

void OutputFile::open_temporary() {
  const char* folder = std::getenv("TMPDIR");
  std::string name =
      (folder != nullptr && *folder != '\0' ? std::string(folder) : "/tmp") + "/headrace-XXXXXX";
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) fail(errno);
  unlink(name.c_str());
}

void OutputFile::write(const void* bytes, std::size_t count) {
  if (const int error = write_all(file_, static_cast<const char*>(bytes), count); error != 0) fail(error);
}

void OutputFile::restart() {
  if (ftruncate(file_, 0) != 0 || lseek(file_, 0, SEEK_SET) != 0) fail(errno);
}

void OutputFile::copy_through() {
  const int target = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (target < 0) fail(errno);
  int error = lseek(file_, 0, SEEK_SET) == 0 ? 0 : errno;
  std::array<char, std::size_t{64} << 10> part{};
  while (error == 0) {
    const ssize_t got = ::read(file_, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      error = got < 0 ? errno : 0;
      break;
    }
    error = write_all(target, part.data(), static_cast<std::size_t>(got));
  }
  if (close(target) != 0 && error == 0) error = errno;
  if (error != 0) fail(error);
}

void OutputFile::commit() {
  if (target_.empty()) {
    copy_through();
    close(std::exchange(file_, -1));
    return;
  }
  int error = close(std::exchange(file_, -1)) == 0 ? 0 : errno;
  if (error == 0) {
    std::error_code renamed;
    fs::rename(beside_, target_, renamed);
    error = renamed.default_error_condition().value();
  }
  if (error != 0) {
    unlink(beside_.c_str());
    fail(error);
  }
}

}  // namespace headrace::profile
