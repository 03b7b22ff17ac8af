#include "trace/database_copy.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"
#include "profile/file_calls.h"

namespace headrace::trace {
namespace {

namespace fs = std::filesystem;

/// A profile of some minutes has a tenth of it.
constexpr std::uint64_t kMaxCopied = std::uint64_t{8} << 30;
constexpr int kTries = 5;
constexpr std::string_view kCure =
    "; end the program that writes it, or run: sqlite3 FILE 'PRAGMA wal_checkpoint'";

std::string log_of(const std::string& path) { return path + "-wal"; }

/// Changes if rows are moved from the log to the database; not if rows are appended to the log.
struct State {
  std::array<std::int64_t, 2> database{};
  std::array<char, 32> log_header{};

  State(int database_file, int log_file) {
    struct stat info{};
    if (fstat(database_file, &info) == 0) database = {info.st_size, profile::modified_ns(info)};
    if (pread(log_file, log_header.data(), log_header.size(), 0) < 0) log_header = {};
  }
  bool operator==(const State&) const = default;
};

void copy_bytes(int from, const std::string& to, const std::string& name) {
  const int file = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::vector<char> block(std::size_t{1} << 20);
  int error = file < 0 ? errno : 0;
  off_t at = 0;
  while (error == 0) {
    const ssize_t bytes = pread(from, block.data(), block.size(), at);
    if (bytes == 0) break;
    // A short write is followed by one that says why.
    const ssize_t wrote = bytes < 0 ? -1 : write(file, block.data(), static_cast<std::size_t>(bytes));
    if (wrote < 0 && errno != EINTR) error = errno;
    if (wrote > 0) at += wrote;
  }
  if (file >= 0 && close(file) != 0 && error == 0) error = errno;
  if (error != 0) throw FormatError(name, "cannot be copied to " + to + ": " + std::strerror(error));
}

}  // namespace

bool has_log(const std::string& path) {
  struct stat info{};
  return stat(log_of(path).c_str(), &info) == 0 && (!S_ISREG(info.st_mode) || info.st_size > 0);
}

DatabaseCopy::DatabaseCopy(const std::string& path, const profile::RegularFile& database) {
  std::error_code unknown;
  const fs::path parent = fs::temp_directory_path(unknown);
  std::string folder = ((unknown ? fs::path("/tmp") : parent) / "headrace-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    throw FormatError(path, "cannot be copied to " + folder + ": " + std::strerror(errno));
  folder_ = folder;
  try {
    copy(path, database);
  } catch (...) {
    fs::remove_all(folder_, unknown);
    throw;
  }
}

DatabaseCopy::~DatabaseCopy() {
  std::error_code unknown;
  fs::remove_all(folder_, unknown);
}

void DatabaseCopy::copy(const std::string& from, const profile::RegularFile& database) {
  const profile::RegularFile log(log_of(from));
  bytes_ = database.bytes() + log.bytes();
  std::error_code unknown;
  const fs::space_info room = fs::space(folder_, unknown);
  if (bytes_ > kMaxCopied || (!unknown && room.available < bytes_ + bytes_ / 8))
    throw FormatError(from, "its newest rows are in " + log_of(from) +
                                ", and both are too large to copy to " +
                                fs::path(folder_).parent_path().string() + std::string(kCure));
  path_ = folder_ + "/copy.db";
  for (int i = 0; i < kTries; ++i) {
    const State before(database.descriptor(), log.descriptor());
    copy_bytes(database.descriptor(), path_, from);
    copy_bytes(log.descriptor(), log_of(path_), from);
    if (before == State(database.descriptor(), log.descriptor())) return;
  }
  throw FormatError(from, "it changes faster than it can be copied" + std::string(kCure));
}

}  // namespace headrace::trace
