// A SQLite file that nobody here wrote: opened for reading, with limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace headrace::trace {

/// The bytes that every SQLite file begins with.
inline constexpr std::string_view kDatabaseMagic{"SQLite format 3\0", 16};

/// Tables of a database, row by row. Used by one thread at a time. Functions throw FormatError with the path
/// and SQLite's own message.
///
/// The file is taken as immutable: no lock, no journal; if rows are still in a log beside it, a private copy of
/// both is read (database_copy.h). Nothing in its schema may run:
/// views and virtual tables are not read, and functions in it are not trusted. A damaged file may lead to one
/// page from many places, so no more rows are given than fit into the file's bytes.
class Database {
 public:
  explicit Database(const std::string& path);
  /// A database in memory, called `name` in errors; copies `bytes`.
  Database(std::string_view bytes, const std::string& name);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Names of the ordinary tables, as they are written.
  const std::vector<std::string>& tables() const noexcept { return tables_; }
  bool has_table(std::string_view name) const noexcept;
  /// Columns of a table in their order; empty if it does not exist.
  std::vector<std::string> columns(const std::string& table) const;

 private:
  friend class TableRows;
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };

  int open(const std::string& uri, int flags);
  void prepare();
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<sqlite3, Close> handle_;
  std::vector<std::string> tables_;
  /// Rows that may still be read.
  std::uint64_t rows_left_ = 0;
};

/// The rows of one table, in the file's order.
class TableRows {
 public:
  /// Columns that the table does not have are NULL in every row, and named in `missing`. A table that does
  /// not exist has no rows.
  TableRows(Database& database, const std::string& table, const std::vector<std::string>& columns);
  ~TableRows();
  TableRows(const TableRows&) = delete;
  TableRows& operator=(const TableRows&) = delete;

  /// Goes to the next row; false behind the last.
  bool next();

  /// Nothing for NULL and for what is no number; a text of digits is a number.
  std::optional<std::int64_t> integer(int column) const;
  std::optional<double> number(int column) const;
  /// Empty for NULL. Valid until the next row.
  std::string_view text(int column) const;
  bool is_null(int column) const;
  bool is_number(int column) const;

  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  std::vector<std::string> missing_;
};

}  // namespace headrace::trace
