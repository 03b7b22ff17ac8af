// A table that fits: columns of least importance go first, then the flexible one shrinks; nothing wraps.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headrace::report {

struct Column {
  std::string title;
  int importance = 0;     ///< the lowest goes first; the flexible column never goes
  bool right = true;      ///< numbers stand to the right
  bool flexible = false;  ///< shrinks, down to `least`, before others are dropped
  std::size_t least = 14;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as there are columns; they are made printable here.
  void add(std::vector<std::string> cells);

  /// Title line first, each at most `width` columns and without trailing blanks.
  std::vector<std::string> lines(std::size_t width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace headrace::report
