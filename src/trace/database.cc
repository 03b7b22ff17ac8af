#include "trace/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"
#include "trace/database_copy.h"

namespace headrace::trace {
namespace {

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
