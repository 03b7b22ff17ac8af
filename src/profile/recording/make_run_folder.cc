#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "headrace/profile/live_pointer.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/unnamed_runs.h"

namespace headrace::profile {

namespace fs = std::filesystem;

namespace {

/// Another user may have put links into a folder of his, under the names of our files.
std::string why_not_ours(const std::string& run) {
  struct stat info{};
  if (access(run.c_str(), W_OK | X_OK) != 0 || stat(run.c_str(), &info) != 0)
    return run + ": " + std::strerror(errno);
  return info.st_uid == geteuid() ? "" : run + ": the folder belongs to another user; name one of your own";
}

}  // namespace

std::string make_run_folder(const std::string& run) {
  std::error_code error;
  const fs::path path(run);
  if (fs::is_directory(path, error)) return why_not_ours(run);
  std::error_code parent;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), parent);
  if (parent) return run + ": " + parent.message();  // mkdir would only say that there is none
  tidy_unnamed_runs(run);
  if (mkdir(run.c_str(), 0700) == 0) return "";
  const int made = errno;
  return made == EEXIST && fs::is_directory(path, error) ? why_not_ours(run)
                                                         : run + ": " + std::strerror(made);
}

std::string free_copy_path(const std::string& run, int rank) {
  for (int number = 1;; ++number) {
    std::string path = run + "/rank" + std::to_string(rank);
    if (number > 1) path += "." + std::to_string(number);
    path += kSegmentSuffix;
    // The pointer reserves the name, so two processes that start at once get two names.
    if (access(path.c_str(), F_OK) == 0) continue;
    const int fd = open(live_pointer_path(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    if (fd >= 0 || errno != EEXIST || number > 10000) return path;
  }
}

}  // namespace headrace::profile
