#include "headrace/profile/private_folder.h"

#include <dirent.h>
#include <cerrno>

#include "headrace/profile/regular_file.h"
#include "profile/file_calls.h"

namespace headrace::profile {

bool is_own_file(int fd) noexcept {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && info.st_nlink == 1;
}

PrivateFolder::PrivateFolder(const std::string& path, bool make) : path_(path) {
  if (make && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return;
  folder_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder_ < 0) return;
  struct stat info{};
  const bool own = fstat(folder_, &info) == 0 && info.st_uid == geteuid();
  if (own && ((info.st_mode & 077) == 0 || fchmod(folder_, 0700) == 0)) return;
  close(folder_);
  folder_ = -1;
}

PrivateFolder::~PrivateFolder() {
  if (folder_ >= 0) close(folder_);
}

void PrivateFolder::each(const std::function<void(const std::string& name)>& visit) const {
  if (!ok()) return;
  const int again = openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = again < 0 ? nullptr : fdopendir(again);
  if (entries == nullptr) {
    if (again >= 0) close(again);
    return;
  }
  while (const dirent* entry = readdir(entries)) visit(entry->d_name);
  closedir(entries);
}

int PrivateFolder::open_file(const std::string& name) const {
  const int fd = openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0 && is_own_file(fd)) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::string PrivateFolder::read_line(const std::string& name) const {
  const Descriptor file(open_file(name));
  const std::string text = file.ok() ? read_short(file.get()) : "";
  return text.substr(0, text.find('\n'));
}

bool PrivateFolder::write_text(const std::string& name, const std::string& text) const {
  unlinkat(folder_, name.c_str(), 0);
  const int fd = openat(folder_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(fd) == 0 && whole) return true;
  unlinkat(folder_, name.c_str(), 0);
  return false;
}

void PrivateFolder::remove(const std::string& name) const { unlinkat(folder_, name.c_str(), 0); }

}  // namespace headrace::profile
