// Bytes as the pointer in a run folder: read as one or refused, and what is read is written as it was.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "demand.h"
#include "headrace/profile/live_pointer.h"

namespace {

using headrace::demand;

using namespace headrace::profile;

/// A folder for the one pointer, removed at the end.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "headrace-fuzz-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string copy_path() const { return path_ + "/rank0.hrseg"; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string copy_path = folder.copy_path();
  const int fd = open(live_pointer_path(copy_path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  demand(fd >= 0 && write(fd, data, size) == static_cast<ssize_t>(size) && close(fd) == 0,
         "it can be written");
  const auto pointer = read_live_pointer(copy_path);
  if (!pointer) return 0;
  pointer->owner_is_gone();
  demand(write_live_pointer(copy_path, *pointer).empty(), "it can be written again");
  const auto again = read_live_pointer(copy_path);
  demand(again && again->path == pointer->path && again->identity == pointer->identity &&
             again->owner_pid == pointer->owner_pid && again->owner_start == pointer->owner_start &&
             again->boot == pointer->boot,
         "it reads back as it was");
  return 0;
}
