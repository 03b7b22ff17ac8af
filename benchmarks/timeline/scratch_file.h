// A file in the machine's temporary folder that goes with the object.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace headrace::bench {

class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() /
               ("headrace-bench-" + std::to_string(getpid()) + "-" + name))
                  .string()) {}
  ~ScratchFile() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace headrace::bench
