// A folder that belongs to this user alone, used through its descriptor.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace headrace::profile {

/// /dev/shm/headrace-<uid>, the folder of live segments, is in a place where every user may make folders. So
/// nothing in it is believed by its path: the folder is opened without following links, its owner and mode
/// are checked on the open descriptor, and its files are opened relative to that descriptor.
///
/// Not thread-safe. Never throws.
class PrivateFolder {
 public:
  /// Opens `path`; with `make`, creates it first (0700). `ok()` is false if it is missing, a link, another
  /// user's, or open to others.
  PrivateFolder(const std::string& path, bool make);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  bool ok() const noexcept { return folder_ >= 0; }
  const std::string& path() const noexcept { return path_; }

  /// Calls `visit` with the name of each entry.
  void each(const std::function<void(const std::string& name)>& visit) const;
  /// Opens a regular file of this user for reading; -1 if it is anything else. The caller closes it.
  int open_file(const std::string& name) const;
  /// The first line of a short text; empty if there is none.
  std::string read_line(const std::string& name) const;
  /// Writes a new short file, or replaces one. False if that fails.
  bool write_text(const std::string& name, const std::string& text) const;
  void remove(const std::string& name) const;

 private:
  std::string path_;
  int folder_ = -1;
};

/// True if an opened file is regular, of this user, and has no other name.
bool is_own_file(int fd) noexcept;

}  // namespace headrace::profile
