#include "trace/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"
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

/// True if SQLite's write-ahead log ("<path>-wal") has content: a program still writes the database, or was
/// killed before it moved the rows. A database opened as immutable does not have those rows.
bool has_log(const std::string& path) {
  struct stat info{};
  return stat(log_of(path).c_str(), &info) == 0 && (!S_ISREG(info.st_mode) || info.st_size > 0);
}

/// Copies a database and its log into a private temporary folder, where SQLite may combine them: the user's
/// files are only read. The folder is removed at the end of the scope; what has the copy open can go on.
class DatabaseCopy {
 public:
  /// FormatError if the two are too large, or if there is no room for them.
  DatabaseCopy(const std::string& path, const profile::RegularFile& database) {
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
  ~DatabaseCopy() {
    std::error_code unknown;
    fs::remove_all(folder_, unknown);
  }
  DatabaseCopy(const DatabaseCopy&) = delete;
  DatabaseCopy& operator=(const DatabaseCopy&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void copy(const std::string& from, const profile::RegularFile& database) {
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

  std::string folder_;
  std::string path_;
  std::uint64_t bytes_ = 0;
};

/// Stacks and shapes are texts of some kilobytes; what is longer than this is damage.
constexpr int kLongestValue = 8 << 20;
constexpr int kLongestSql = 64 << 10;
constexpr int kMaxColumns = 200;
constexpr std::size_t kMaxTables = 1000;
/// A row takes its pointer in the page and at least two bytes of its own.
constexpr std::uint64_t kSmallestRow = 4;

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + '"';
}

/// Letters that mean something in a URI are escaped.
std::string uri_of(const std::string& path, std::string_view mode) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      const auto byte = static_cast<unsigned char>(c);
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      uri += c;
    }
  }
  return uri.append("?").append(mode);
}

/// A statement that is finished at the end of the scope.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  sqlite3_stmt* get() const noexcept { return statement_; }

 private:
  sqlite3_stmt* statement_;
};

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

int Database::open(const std::string& uri, int flags) {
  sqlite3* handle = nullptr;
  const int state = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);  // also if it failed: it holds the message
  return state;
}

Database::Database(const std::string& path) : path_(path) {
  const profile::RegularFile file(path);
  bytes_ = file.bytes();
  std::optional<DatabaseCopy> copy;
  if (has_log(path)) bytes_ = copy.emplace(path, file).bytes();
  constexpr int kFlags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int state = copy ? open(uri_of(copy->path(), "mode=rw"), kFlags | SQLITE_OPEN_READWRITE)
                         : open(uri_of(path, "mode=ro&immutable=1"), kFlags | SQLITE_OPEN_READONLY);
  if (state != SQLITE_OK) {
    const std::string message = handle_ == nullptr ? "no memory" : sqlite3_errmsg(handle_.get());
    throw FormatError(path, 0, "a SQLite database: " + message);
  }
  if (copy) {  // used by this connection alone: nothing is shared, nothing is written back
    sqlite3_exec(handle_.get(), "PRAGMA locking_mode=EXCLUSIVE", nullptr, nullptr, nullptr);
    sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  prepare();
}

Database::Database(std::string_view bytes, const std::string& name) : path_(name), bytes_(bytes.size()) {
  if (open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX) != SQLITE_OK)
    throw FormatError(name, 0, "memory for a SQLite database");
  auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(std::max<std::size_t>(bytes.size(), 1)));
  if (copy != nullptr) std::copy(bytes.begin(), bytes.end(), copy);
  constexpr unsigned kFlags = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY;
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (copy == nullptr || sqlite3_deserialize(handle_.get(), "main", copy, size, size, kFlags) != SQLITE_OK)
    throw FormatError(name, 0, "a SQLite database");
  prepare();
}

void Database::Close::operator()(sqlite3* handle) const noexcept { sqlite3_close(handle); }

Database::~Database() = default;

void Database::fail(const char* what) const {
  const std::string message = std::string(what) + ": " + sqlite3_errmsg(handle_.get());
  throw FormatError(path_, 0, message);
}

void Database::prepare() {
  rows_left_ = bytes_ / kSmallestRow;
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_SQL_LENGTH, kLongestSql);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_COLUMN, kMaxColumns);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_EXPR_DEPTH, 50);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_ATTACHED, 0);
  // Eight MiB of pages at most, and no page that contradicts itself.
  sqlite3_exec(handle_.get(), "PRAGMA cache_size=-8192; PRAGMA cell_size_check=ON; PRAGMA query_only=ON;",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* statement = nullptr;
  const char* const sql = "SELECT name, sql FROM sqlite_master WHERE type = 'table'";
  int state = sqlite3_prepare_v2(handle_.get(), sql, -1, &statement, nullptr);
  const Statement list(statement);
  while (state == SQLITE_OK || state == SQLITE_ROW) {
    state = sqlite3_step(list.get());
    if (state != SQLITE_ROW || tables_.size() == kMaxTables) break;
    std::string made_by = text_of(list.get(), 1).substr(0, 16);
    std::transform(made_by.begin(), made_by.end(), made_by.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    if (made_by.starts_with("CREATE TABLE")) tables_.push_back(text_of(list.get(), 0));
  }
  if (state != SQLITE_ROW && state != SQLITE_DONE) {
    throw FormatError(path_, 0, std::string("a SQLite database: ") + sqlite3_errmsg(handle_.get()));
  }
}

bool Database::has_table(std::string_view name) const noexcept {
  return std::find(tables_.begin(), tables_.end(), name) != tables_.end();
}

std::vector<std::string> Database::columns(const std::string& table) const {
  std::vector<std::string> names;
  if (!has_table(table)) return names;
  sqlite3_stmt* statement = nullptr;
  const std::string sql = "SELECT * FROM " + identifier(table);
  const int state = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr);
  const Statement made(statement);
  if (state != SQLITE_OK) fail(("a table " + table).c_str());
  const int count = sqlite3_column_count(made.get());
  for (int i = 0; i < count; ++i) {
    const char* name = sqlite3_column_name(made.get(), i);
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

TableRows::TableRows(Database& database, const std::string& table, const std::vector<std::string>& columns)
    : database_(database) {
  if (!database.has_table(table)) return;
  const std::vector<std::string> there = database.columns(table);
  std::string sql;
  for (const std::string& column : columns) {
    const bool known = std::find(there.begin(), there.end(), column) != there.end();
    if (!known) missing_.push_back(column);
    sql += (sql.empty() ? "SELECT " : ", ") + (known ? identifier(column) : std::string("NULL"));
  }
  sql += " FROM " + identifier(table);
  if (sqlite3_prepare_v2(database.handle_.get(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    database.fail(("a table " + table).c_str());
}

TableRows::~TableRows() { sqlite3_finalize(statement_); }

bool TableRows::next() {
  if (statement_ == nullptr) return false;
  const int state = sqlite3_step(statement_);
  if (state == SQLITE_DONE) return false;
  if (state != SQLITE_ROW) database_.fail("a sound database");
  if (database_.rows_left_ == 0)
    throw FormatError(database_.path_, 0, "no more rows than fit in the file: the database is damaged");
  --database_.rows_left_;
  return true;
}

bool TableRows::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

bool TableRows::is_number(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

std::optional<std::int64_t> TableRows::integer(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement_, column);
    case SQLITE_FLOAT: {
      const double value = sqlite3_column_double(statement_, column);
      constexpr double kMax = 9.2e18;
      if (!(value > -kMax && value < kMax)) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    case SQLITE_TEXT: {
      const std::string_view digits = text(column);
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
      return value;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> TableRows::number(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement_, column);
    default:
      return std::nullopt;
  }
}

std::string_view TableRows::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace headrace::trace
