// A database whose newest rows are still in the log beside it.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/profile/regular_file.h"

namespace headrace::trace {

/// True if SQLite's write-ahead log ("<path>-wal") has content: a program still writes the database, or was
/// killed before it moved the rows. A database opened as immutable does not have those rows.
bool has_log(const std::string& path);

/// Copies a database and its log into a private temporary folder, where SQLite may combine them: the user's
/// files are only read. The folder is removed at the end of the scope; what has the copy open can go on.
class DatabaseCopy {
 public:
  /// FormatError if the two are too large, or if there is no room for them.
  DatabaseCopy(const std::string& path, const profile::RegularFile& database);
  ~DatabaseCopy();
  DatabaseCopy(const DatabaseCopy&) = delete;
  DatabaseCopy& operator=(const DatabaseCopy&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void copy(const std::string& from, const profile::RegularFile& database);

  std::string folder_;
  std::string path_;
  std::uint64_t bytes_ = 0;
};

}  // namespace headrace::trace
