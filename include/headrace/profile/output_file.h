// A file that gets its name when it is complete.
#pragma once

#include <cstddef>
#include <string>

namespace headrace::profile {

/// Writes beside `path` and renames at `commit`, so that no reader sees half a file and a failure leaves the
/// old one. A symbolic link is followed, not replaced. What exists and is no regular file (a device, a pipe,
/// `>(command)`) is never replaced: the content goes to a temporary file first and is copied through at
/// `commit`. New files have mode 0600. Not thread-safe. Every function throws Error with the path and the
/// reason.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  /// Without `commit` nothing is left behind.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* bytes, std::size_t count);
  /// Begins again, as if nothing had been written.
  void restart();
  void commit();

 private:
  void open_beside();
  void open_temporary();
  void copy_through();
  [[noreturn]] void fail(int error) const;

  std::string path_;    ///< as given, for messages
  std::string target_;  ///< the regular file to replace; empty: the content is copied through
  std::string beside_;
  int file_ = -1;
};

}  // namespace headrace::profile
